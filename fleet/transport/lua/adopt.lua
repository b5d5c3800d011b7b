-- adopt: take over a message that a stock Celery client has pushed to a plain list.
-- KEYS[1]  the queue
-- ARGV     now, list, its bytes, then the message as for enqueue
-- Result   1, or 0 if another worker has it or its id is known
-- Keeps    it is either in the list or in the queue
-- Cost     O(log n) for bytes at the left end of their list
-- guard: what is adopted stays in the list until it is put in
if not call('LPOS', ARGV[2], ARGV[3]) then
    return 0
end
count('adopted')
local new = enqueue(ARGV, 4)
settle()
call('LREM', ARGV[2], 1, ARGV[3]) -- last: an act that fails halfway leaves it in the list
return new
