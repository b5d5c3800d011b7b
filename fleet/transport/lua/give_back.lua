-- give_back: a worker will not run these messages: somebody else may.
-- KEYS[1]  the queue
-- ARGV     now, worker, then for each: id, lease, delay (us)
-- Result   how many leases were this worker's
-- Keeps    the order: a message goes back to its old place, which is the front
-- Cost     O(log n) for each
local named = leases_named(ARGV[2], 3)
for _, pair in ipairs(named) do
    put_back(pair[1], tonumber(ARGV[pair[2] + 2]))
end
count('given_back', #named)
settle()
return #named
