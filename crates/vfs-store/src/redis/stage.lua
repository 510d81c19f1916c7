-- Stores a part of a staged content. Returns 1, or 0 if an earlier part is missing.
--
-- ARGV: the token; the offset of the part in the content; the part; the expiry of the content without another part, in
-- milliseconds.
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
