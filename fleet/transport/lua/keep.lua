-- keep: a worker names its leases over a new connection; the others are taken back.
-- KEYS[1]  the queue
-- ARGV     now, worker, then for each message that it holds: id, lease
-- Result   how many messages went back
-- Keeps    no message stays leased because the server failed over before its end arrived; the named
--          ones stay leased: the worker's next take counts as its first
-- Cost     O(log n) for each that goes back, and O(1) for each that is held
local named, returned = {}, 0
for _, pair in ipairs(leases_named(ARGV[2], 2)) do
    named[pair[1].id] = true
end
for _, lease in ipairs(leases_held(ARGV[2])) do
    if not named[lease.id] then
        put_back(lease)
        returned = returned + 1
    end
end
call('HDEL', key.takes, ARGV[2])
count('given_back', returned)
settle()
return returned
