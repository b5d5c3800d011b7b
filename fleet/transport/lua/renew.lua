-- renew: a worker lives, and with it its leases.
-- KEYS[1]  the queue
-- ARGV     now, worker
-- Result   how many messages it holds
-- Keeps    -
-- Cost     O(log n)
call('ZADD', key.workers, now, ARGV[2])
return call('HLEN', key.held .. ARGV[2])
