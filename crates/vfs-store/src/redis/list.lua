-- A page of a listing, from one place of the index on.
--
-- ARGV: what the paths begin with, up to the '/'; where to begin and where to end, as bounds of ZRANGE; 'level' or 'all'; the most
-- files and directories. The answer: path, head and size of each file; the directories; paths in the index that have no file; where
-- the next page begins, or nothing.

local beginning, from, till = ARGV[1], ARGV[2], ARGV[3]
local is_level, limit = ARGV[4] == 'level', tonumber(ARGV[5])
-- How many paths are read at once: few, until it is seen that not each is in a directory that is then passed over.
local FEWEST, MOST = 8, 512
local MOST_STALE = 1000

local files, directories, stale = {}, {}, {}
local found, width = 0, is_level and FEWEST or MOST

while true do
  local paths = redis.call('ZRANGE', index, from, till, 'BYLEX', 'LIMIT', 0, math.min(width, limit - found + 1))
  if #paths == 0 then
    return { files, directories, stale, '' }
  end
  width = math.min(2 * width, MOST)
  for _, path in ipairs(paths) do
    if found == limit or #stale == MOST_STALE then
      return { files, directories, stale, from }
    end
    local slash = is_level and string.find(path, '/', #beginning + 1, true)
    local head, size = look(path)
    if not head then
      stale[#stale + 1] = path
      from = '(' .. path
    elseif slash then
      local directory = string.sub(path, 1, slash - 1)
      directories[#directories + 1] = directory
      found = found + 1
      -- '0' is what comes next after '/'.
      from = '[' .. directory .. '0'
      width = FEWEST
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
