-- The number of the newest change, and the entries of the log after one. ARGV: how many at most; the position, where any are wanted.

local limit, seen = ARGV[1], ARGV[2]
local entries = seen and redis.call('XRANGE', log, '(' .. seen .. '-0', '+', 'COUNT', limit) or {}
return { string.format('%.0f', newest()), entries }
