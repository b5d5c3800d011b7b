-- enqueue: put messages into the queue, each under its owner.
-- KEYS[1]  the queue
-- ARGV     now, then for each message: id, owner, submission, priority (0-9, higher first), delay
--          (us; below 0: it has waited that long), deadline (us from now, '' for none), lock ('' for
--          none), task, raw
-- Result   how many were new; one whose id is known is not added again
-- Keeps    one placeholder in the list for each message that is ready or parked
-- Cost     O(log n) for each message
-- The first message in an emptied queue wakes the sleeping workers.
meet_epoch(0, 0)
local new = enqueue(ARGV, 2)
settle()
return new
