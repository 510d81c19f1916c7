-- Returns the sequence number of the newest change, and the entries of the log after a sequence number. ARGV: the
-- maximum number of entries and the sequence number, or nothing for no entries.

local limit, seen = ARGV[1], ARGV[2]
local entries = seen and redis.call('XRANGE', log, '(' .. seen .. '-0', '+', 'COUNT', limit) or {}
return { string.format('%.0f', last_sequence()), entries }
