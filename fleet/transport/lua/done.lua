-- done: `finish` and `ack` in one: the runs of these messages have ended; remove them.
-- KEYS[1]  the queue
-- ARGV     now, worker, then for each: id, lease, run time (us)
-- Result   how many leases were this worker's
-- Keeps    what `finish` and `ack` keep
-- Cost     O(log n) for each
local leases, finished = {}, 0
for index, pair in ipairs(leases_named(ARGV[2], 3)) do
    local lease, at = unpack(pair)
    leases[index] = lease
    finished = finished + (charge(lease, ARGV[at + 2]) and 1 or 0)
end
drop(leases)
count('finished', finished)
count('acked', #leases)
settle()
return #leases
