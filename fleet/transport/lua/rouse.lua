-- rouse: a worker sleeps no more; who still sleeps is woken in its place when there is work.
-- KEYS[1]  the queue
-- ARGV     now, worker
-- Result   1 when somebody may have been woken
-- Keeps    no wake-up is lost with the worker for which it was meant
-- Cost     O(log n)
call('ZREM', key.sleepers, ARGV[2])
if not end_watch(ARGV[2]) and call('EXISTS', key.eligible) == 0 then
    return 0
end
settle()
wake(1)
return 1
