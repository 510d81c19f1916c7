-- Functions that the scripts share: the keys of a namespace, its files and its log.
--
-- A file is one string: a head of 80 bytes ('vfs1 <version> <created> <modified>\n') and the content, so that both
-- expire, move and are evicted together. The index is a sorted set of paths, all with the score 0. The log is a stream
-- whose ids are '<sequence>-0'.

local base = KEYS[1]
local index, log = base .. ':index', base .. ':log'
local HEAD, MIN_LOG_LENGTH = 80, 4096
local sequence

local function file(path)
  return base .. ':file:' .. path
end

-- Returns the key of the record of an operation.
local function operation_key(operation)
  return base .. ':operation:' .. operation
end

-- Returns the key of a staged content, which has space for a head.
local function staged_key(token)
  return base .. ':staged:' .. token
end

-- Returns the head of a file and the size of its content, or nil if there is no file. If another program wrote the
-- value, the head is not sound.
local function read_head(path)
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

-- Returns the sequence number of the newest change, also if another program has removed its entry from the log.
local function last_sequence()
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

local function load_sequence()
  sequence = last_sequence()
end

local function log_change(kind, path, from, head, size)
  sequence = sequence + 1
  local id = string.format('%.0f-0', sequence)
  redis.call('XADD', log, 'MAXLEN', '~', MIN_LOG_LENGTH, id,
    'kind', kind, 'path', path, 'from', from, 'head', head, 'size', size)
end
