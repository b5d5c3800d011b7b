-- leave: a worker ends: take back its messages, and forget it.
-- KEYS[1]  the queue
-- ARGV     now, worker, limit
-- Result   how many messages went back; call again until there are fewer than the limit
-- Keeps    nothing is held by a worker that is forgotten
-- Cost     O(log n) for each
-- guard: a worker that leaves holds nothing
local returned = put_back_some(ARGV[2], tonumber(ARGV[3]))
count('given_back', returned)
local had_watch = end_watch(ARGV[2])
settle()
if had_watch then
    wake(1)
end
return returned
