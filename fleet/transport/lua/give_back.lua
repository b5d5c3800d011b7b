-- give_back: put messages back into the queue that a worker will not run.
-- KEYS[1]  the queue
-- ARGV     now, worker, then for each: id, lease, delay (us), '1' if it was rejected
-- Result   the number of leases that belonged to this worker
-- Keeps    the order: a message goes back to its old place, at the front; a rejected one goes behind
--          others of its priority
-- Cost     O(log n) for each
local named = leases_named(ARGV[2], 4)
for _, pair in ipairs(named) do
    local lease, at = unpack(pair)
    put_back(lease, tonumber(ARGV[at + 2]), ARGV[at + 3] == '1')
end
count('given_back', #named)
settle()
return #named
