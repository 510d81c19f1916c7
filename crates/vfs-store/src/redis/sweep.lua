-- Takes paths out of the index whose files have expired, and tells that they are gone. ARGV: the paths.

redis.call('ZCARD', index)
find_position()
for _, path in ipairs(ARGV) do
  if redis.call('EXISTS', file(path)) == 0 and redis.call('ZREM', index, path) == 1 then
    tell('removed', path, '', '', 0)
  end
end
return #ARGV
