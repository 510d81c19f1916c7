-- Removes paths whose files have expired from the index, and logs their removal. ARGV: the paths.

redis.call('ZCARD', index)
load_sequence()
for _, path in ipairs(ARGV) do
  if redis.call('EXISTS', file(path)) == 0 and redis.call('ZREM', index, path) == 1 then
    log_change('removed', path, '', '', 0)
  end
end
return #ARGV
