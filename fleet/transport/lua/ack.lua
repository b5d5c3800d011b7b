-- ack: remove these messages.
-- KEYS[1]  the queue
-- ARGV     now, worker, then for each: id, lease
-- Result   how many leases were this worker's
-- Keeps    a message that another worker has leased stays; one that never ran costs nothing, also
--          nothing of its owner's rate
-- Cost     O(log n) for each
local leases = {}
for index, pair in ipairs(leases_named(ARGV[2], 2)) do
    leases[index] = pair[1]
end
drop(leases)
count('acked', #leases)
settle()
return #leases
