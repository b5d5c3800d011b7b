-- Look at the oldest messages of a list that is pushed at the left.
-- KEYS: the list. ARGV: at most so many messages; at most so many bytes of them all.
-- Result: the messages, oldest first: one at least, unless there is none.
-- Keeps true: nothing is taken away.
-- Cost: O(messages returned), from the right end.
local found, size = {}, 0
for index = 1, tonumber(ARGV[1]) do
  local raw = redis.call('LINDEX', KEYS[1], -index)
  if not raw then break end
  size = size + #raw
  if index > 1 and size > tonumber(ARGV[2]) then break end
  found[index] = raw
end
return found
