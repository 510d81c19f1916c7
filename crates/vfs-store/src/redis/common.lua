-- What the scripts share: the keys of a namespace, its files and its log.
--
-- A file is one string: a head of 80 bytes ('vfs1 <version> <created> <modified>\n') and the content, so that both expire, move and
-- are evicted together. The index is a sorted set of paths, all with the score 0. The log is a stream whose ids are '<position>-0'.

local base = KEYS[1]
local index, log = base .. ':index', base .. ':log'
local HEAD, REMEMBERED = 80, 4096
local position

local function file(path)
  return base .. ':file:' .. path
end

-- The record of an operation.
local function operation_key(operation)
  return base .. ':operation:' .. operation
end

-- The content in parts that is not put yet, with room for a head.
local function staged_key(token)
  return base .. ':staged:' .. token
end

-- The head of a file and the size of its content, or nil where there is none. Where the value is none of this store's, the head is
-- not sound.
local function look(path)
  local head = redis.pcall('GETRANGE', file(path), 0, HEAD - 1)
  if type(head) == 'table' then
    if string.find(head.err, 'WRONGTYPE', 1, true) then
      return '', 0
    end
    error(head)
  end
  if head == '' and redis.call('EXISTS', file(path)) == 0 then
    return nil
  end
  return head, redis.call('STRLEN', file(path)) - HEAD
end

local function is_sound(head)
  return #head == HEAD and string.sub(head, 1, 5) == 'vfs1 '
end

-- The number of the newest change that was ever told, also where another program has removed its entry from the log.
local function newest()
  if redis.call('EXISTS', log) == 0 then
    return 0
  end
  local facts = redis.call('XINFO', 'STREAM', log)
  for at = 1, #facts, 2 do
    if facts[at] == 'last-generated-id' then
      return tonumber(string.match(facts[at + 1], '^%d+'))
    end
  end
end

local function find_position()
  position = newest()
end

local function tell(kind, path, from, head, size)
  position = position + 1
  local id = string.format('%.0f-0', position)
  redis.call('XADD', log, 'MAXLEN', '~', REMEMBERED, id,
    'kind', kind, 'path', path, 'from', from, 'head', head, 'size', size)
end
