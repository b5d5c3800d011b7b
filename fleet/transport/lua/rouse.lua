-- rouse: a worker stops sleeping; another sleeper is woken in its place if there is work.
-- KEYS[1]  the queue
-- ARGV     now, worker
-- Result   1 if another worker may have been woken
-- Keeps    no wake-up is lost with the worker that was to get it
-- Cost     O(log n)
call('ZREM', key.sleepers, ARGV[2])
if not end_watch(ARGV[2]) and call('EXISTS', key.eligible) == 0 then
    return 0
end
settle()
wake(1)
return 1
