-- delete: remove leased messages: the queue is deleted.
-- KEYS[1]  the queue
-- ARGV     now
-- Result   how many leases there were
-- Keeps    later operations on a removed lease are ignored
-- Cost     O(log n) for each lease
local count_of_leases = 0
call('DEL', key.again)
for _, worker in ipairs(call('ZRANGE', key.workers, 0, -1)) do
    local leases = leases_held(worker)
    drop(leases)
    count_of_leases = count_of_leases + #leases
end
settle()
return count_of_leases
