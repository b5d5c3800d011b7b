-- renew: a worker lives: renew its leases.
-- KEYS[1]  the queue
-- ARGV     now, worker, the epoch that it knows (0 for none), number of the last lease that it knows
-- Result   {how many messages it holds, epoch, 1 when it is told}
-- Keeps    a new epoch wakes the sleeping workers
-- Cost     O(log n)
-- guard: a worker that renews keeps what it holds
call('ZADD', key.workers, now, ARGV[2])
if meet_epoch(tonumber(ARGV[3]) or 0, tonumber(ARGV[4]) or 0) then
    call('RPUSH', key.wake, '1')
    call('PEXPIRE', key.wake, 10000)
end
settle()
return {call('HLEN', key.held .. ARGV[2]), state.epoch, is_told() and 1 or 0}
