-- A file, or a part of it: its head, its size and the bytes from one place to another. Nothing where there is none.
--
-- ARGV: the path; the first and the last byte of the content, where any is wanted. A transaction would do as well, but a server
-- without memory refuses to queue its commands.

local path, first, last = ARGV[1], ARGV[2], ARGV[3]
local head, size = look(path)
if not head then
  return {}
end
local content = ''
if first and is_sound(head) then
  content = redis.call('GETRANGE', file(path), HEAD + first, HEAD + last)
end
return { head, size, content }
