-- Returns a page of a listing that starts at a bound in the index.
--
-- ARGV: the prefix of the paths, up to the '/'; the start and the end, as bounds of ZRANGE; 'level' or 'all'; the
-- maximum number of files and directories. The reply has path, head and size of each file; the directories; the paths
-- in the index that have no file; and the start of the next page, or an empty string.

local prefix, from, till = ARGV[1], ARGV[2], ARGV[3]
local is_level, limit = ARGV[4] == 'level', tonumber(ARGV[5])
-- Number of paths that are read at once: few at first, because the listing may skip the rest of a directory.
local MIN_WIDTH, MAX_WIDTH = 8, 512
local MAX_STALE = 1000

local files, directories, stale = {}, {}, {}
local found, width = 0, is_level and MIN_WIDTH or MAX_WIDTH

while true do
  local paths = redis.call('ZRANGE', index, from, till, 'BYLEX', 'LIMIT', 0, math.min(width, limit - found + 1))
  if #paths == 0 then
    return { files, directories, stale, '' }
  end
  width = math.min(2 * width, MAX_WIDTH)
  for _, path in ipairs(paths) do
    if found == limit or #stale == MAX_STALE then
      return { files, directories, stale, from }
    end
    local slash = is_level and string.find(path, '/', #prefix + 1, true)
    local head, size = read_head(path)
    if not head then
      stale[#stale + 1] = path
      from = '(' .. path
    elseif slash then
      local directory = string.sub(path, 1, slash - 1)
      directories[#directories + 1] = directory
      found = found + 1
      -- '0' is the character after '/'.
      from = '[' .. directory .. '0'
      width = MIN_WIDTH
      break
    else
      files[#files + 1] = path
      files[#files + 1] = head
      files[#files + 1] = size
      found = found + 1
      from = '(' .. path
    end
  end
end
