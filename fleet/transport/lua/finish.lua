-- finish: the runs of these messages have ended: charge their owners, free caps and locks.
-- KEYS[1]  the queue
-- ARGV     now, worker, then for each: id, lease, run time (us)
-- Result   how many leases were this worker's and not finished before
-- Keeps    a lease is charged once, by the worker that holds it
-- Cost     O(log n) for each
local finished = {}
for _, pair in ipairs(leases_named(ARGV[2], 3)) do
    local lease, at = unpack(pair)
    if charge(lease, ARGV[at + 2]) then
        finished[#finished + 1] = lease.id
        finished[#finished + 1] = cmsgpack.pack(lease.number)
    end
end
set_fields(key.held .. ARGV[2], finished)
count('finished', #finished / 2)
settle()
return #finished / 2
