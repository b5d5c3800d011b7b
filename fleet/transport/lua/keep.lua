-- keep: a worker is back over a new connection: what it does not name, it does not hold.
-- KEYS[1]  the queue
-- ARGV     now, worker, then for each message that it holds: id, lease
-- Result   how many messages went back
-- Keeps    nothing is held for ever because a server that took over had not heard of its end; what
--          the worker names stays its own: its next take is its first
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
