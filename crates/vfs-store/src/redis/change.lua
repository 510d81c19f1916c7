-- Applies all writes if all conditions hold, and none otherwise.
--
-- ARGV: the id of this change; whether it may have been sent before; whether the namespace is registered; the expiry of
-- its files and of the stored outcome, both in milliseconds; the key of the operation, its record and the expiry of the
-- record in milliseconds, all empty if there is no record; the number of conditions; each condition as kind, path,
-- version; each write as kind, path, another path or a token, bytes.
--
-- Redis does not roll back a script that fails, so everything that can fail is checked before the first write.

local receipt = base .. ':done:' .. ARGV[1]
local is_repeated, is_registered = ARGV[2] == '1', ARGV[3] == '1'
local file_ttl, receipt_ttl = tonumber(ARGV[4]), ARGV[5]
local operation, record, record_ttl = ARGV[6], ARGV[7], ARGV[8]
local first_condition = 10
local first_write = first_condition + 3 * tonumber(ARGV[9])
local heads, there = {}, {}

local function store_outcome(reply)
  redis.call('SET', receipt, cmsgpack.pack(reply), 'PX', receipt_ttl)
end

local function at(path)
  if heads[path] == nil then
    local head, size = read_head(path)
    if head and not is_sound(head) then
      error({ reply = { 'damaged', path } })
    end
    heads[path] = head and { head, size } or false
  end
  return heads[path]
end

local function refuse(path, found)
  local reply = { 'refused', path }
  if found then
    reply[3], reply[4] = found[1], found[2]
  end
  -- An earlier copy of this change may still arrive, and must not be applied after this reply.
  if is_repeated then
    store_outcome(reply)
  end
  error({ reply = reply })
end

-- Returns whether there is a file below `path`. Paths in the index whose file has expired do not count.
local function has_below(path)
  local directory = path == '/' and '' or path
  local from, till = '[' .. directory .. '/', '(' .. directory .. '0'
  while true do
    local paths = redis.call('ZRANGE', index, from, till, 'BYLEX', 'LIMIT', 0, 16)
    for _, found in ipairs(paths) do
      if redis.call('EXISTS', file(found)) == 1 then
        return true
      end
      from = '(' .. found
    end
    if #paths == 0 then
      return false
    end
  end
end

local function check_conditions()
  for at_argument = first_condition, first_write - 1, 3 do
    local kind, path, version = ARGV[at_argument], ARGV[at_argument + 1], ARGV[at_argument + 2]
    local holds
    if kind == 'below' then
      holds = not has_below(path)
    elseif kind == 'nothing' then
      holds = not at(path)
    else
      local found = at(path)
      holds = found and string.sub(found[1], 6, 37) == version
    end
    if not holds then
      refuse(path, at(path))
    end
  end
end

local function is_there(path)
  if there[path] == nil then
    there[path] = at(path) and true or false
  end
  return there[path]
end

-- Checks the writes without applying them: the sources exist, and no value at their paths is that of another program.
local function check_writes()
  local claimed = {}
  for at_argument = first_write, #ARGV, 4 do
    local kind, path, to = ARGV[at_argument], ARGV[at_argument + 1], ARGV[at_argument + 2]
    local was_there = is_there(path)
    local is_put = kind == 'put' or kind == 'put staged'
    if not is_put and not was_there then
      refuse(path)
    end
    if kind == 'put staged' then
      local size = tonumber(string.sub(ARGV[at_argument + 3], HEAD + 1))
      if claimed[to] or redis.call('STRLEN', staged_key(to)) ~= HEAD + size then
        error({ reply = { 'not staged', path } })
      end
      claimed[to] = true
    end
    if is_put then
      there[path] = true
    elseif kind == 'delete' then
      there[path] = false
    else
      is_there(to)
      if kind == 'move' then
        there[path] = false
      end
      there[to] = true
    end
  end
end

local function expire(path)
  if file_ttl > 0 then
    redis.call('PEXPIRE', file(path), file_ttl)
  else
    redis.call('PERSIST', file(path))
  end
end

local writes = {}

function writes.put(path, _, value)
  local kind = redis.call('EXISTS', file(path)) == 1 and 'changed' or 'created'
  if file_ttl > 0 then
    redis.call('SET', file(path), value, 'PX', file_ttl)
  else
    redis.call('SET', file(path), value)
  end
  redis.call('ZADD', index, 0, path)
  local head, size = string.sub(value, 1, HEAD), #value - HEAD
  log_change(kind, path, '', head, size)
  return head, size
end

-- `value` is the head, for which the staged content has space, and the size of the content.
writes['put staged'] = function(path, token, value)
  local head, size = string.sub(value, 1, HEAD), tonumber(string.sub(value, HEAD + 1))
  local kind = redis.call('EXISTS', file(path)) == 1 and 'changed' or 'created'
  local staged = staged_key(token)
  redis.call('SETRANGE', staged, 0, head)
  redis.call('RENAME', staged, file(path))
  expire(path)
  redis.call('ZADD', index, 0, path)
  log_change(kind, path, '', head, size)
  return head, size
end

function writes.delete(path)
  local head, size = read_head(path)
  redis.call('UNLINK', file(path))
  redis.call('ZREM', index, path)
  log_change('removed', path, '', '', 0)
  return head, size
end

function writes.move(path, to)
  redis.call('RENAME', file(path), file(to))
  redis.call('ZREM', index, path)
  redis.call('ZADD', index, 0, to)
  local head, size = read_head(to)
  log_change('moved', to, path, head, size)
  return head, size
end

-- `times` replaces the times in the head.
function writes.copy(path, to, times)
  local kind = redis.call('EXISTS', file(to)) == 1 and 'changed' or 'created'
  if path ~= to then
    redis.call('COPY', file(path), file(to), 'REPLACE')
  end
  redis.call('SETRANGE', file(to), HEAD - #times, times)
  expire(to)
  redis.call('ZADD', index, 0, to)
  local head, size = read_head(to)
  log_change(kind, to, '', head, size)
  return head, size
end

local function change()
  local earlier = redis.call('GET', receipt)
  if earlier then
    return cmsgpack.unpack(earlier)
  end
  if not is_registered and redis.call('EXISTS', log) == 0 then
    return { 'register' }
  end
  if operation ~= '' and redis.call('EXISTS', operation_key(operation)) == 1 then
    return { 'recorded' }
  end
  redis.call('ZCARD', index)
  load_sequence()
  check_conditions()
  check_writes()
  local reply = { 'done' }
  for at_argument = first_write, #ARGV, 4 do
    local write = writes[ARGV[at_argument]]
    local head, size = write(ARGV[at_argument + 1], ARGV[at_argument + 2], ARGV[at_argument + 3])
    reply[#reply + 1] = head
    reply[#reply + 1] = size
  end
  store_outcome(reply)
  if operation ~= '' then
    redis.call('SET', operation_key(operation), record, 'PX', record_ttl)
  end
  return reply
end

local is_ok, result = pcall(change)
if is_ok or (type(result) == 'table' and result.err) then
  return result
end
if type(result) == 'table' then
  return result.reply
end
return redis.error_reply(result)
