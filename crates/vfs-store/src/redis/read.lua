-- Returns the head and the size of a file, and a range of its content. The reply is empty if there is no file.
--
-- ARGV: the path; the first and the last byte of the range, if it is not empty. A script is used instead of a
-- transaction, because a server without free memory refuses to queue the commands of a transaction.

local path, first, last = ARGV[1], ARGV[2], ARGV[3]
local head, size = read_head(path)
if not head then
  return {}
end
local content = ''
if first and is_sound(head) then
  content = redis.call('GETRANGE', file(path), HEAD + first, HEAD + last)
end
return { head, size, content }
