-- Return the oldest messages of a list that is pushed at the left.
-- KEYS: the list. ARGV: most messages; most bytes of all of them.
-- Result: the messages, oldest first; at least one, if there is any.
-- Keeps true: removes nothing.
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
