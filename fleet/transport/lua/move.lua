-- move: put a waiting message into a plain list, and out of the queue.
-- KEYS[1]  the queue
-- ARGV     now, the message's id, list, bytes
-- Result   1, or 0 if it is leased or unknown
-- Keeps    it is either in the queue or in the list; what `withdraw` keeps
-- Cost     O(log n)
local message = message_of(ARGV[2])
if not message or place_of(message) == 'leased' then
    return 0
end
-- guard: what is moved is in the list before it leaves the queue
call('LPUSH', ARGV[3], ARGV[4])
withdraw({ARGV[2]})
settle()
return 1
