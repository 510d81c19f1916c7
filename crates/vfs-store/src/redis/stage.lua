-- Stores a part of a content that is not put yet. Answers 1, or 0 where the parts before it are not there.
--
-- ARGV: the token; where in the content the part begins; the part; how long the content is kept without another, in milliseconds.
--
-- A part may be sent again. The head is written when the content is put.

local staged = staged_key(ARGV[1])
local offset = tonumber(ARGV[2])
if offset > 0 and redis.call('STRLEN', staged) < HEAD + offset then
  return 0
end
redis.call('SETRANGE', staged, HEAD + offset, ARGV[3])
redis.call('PEXPIRE', staged, ARGV[4])
return 1
