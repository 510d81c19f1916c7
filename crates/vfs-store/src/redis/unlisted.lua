-- Returns the paths in ARGV whose file exists but which are missing in the index.

local unlisted = {}
for _, path in ipairs(ARGV) do
  if redis.call('EXISTS', file(path)) == 1 and not redis.call('ZSCORE', index, path) then
    unlisted[#unlisted + 1] = path
  end
end
return unlisted
