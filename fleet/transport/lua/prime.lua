-- prime: mark the queue as told or filled, after it was emptied.
-- KEYS[1]  the queue
-- ARGV     now, the epoch in which that was done, what: 'told' of owners, 'filled' with hints
-- Result   1, or 0 if another epoch has begun meanwhile
-- Keeps    a queue that is emptied meanwhile is not marked
-- Cost     O(1)
-- guard: a flush in the middle of a rebuild begins it again
if state.epoch ~= tonumber(ARGV[2]) then
    return 0
end
state[ARGV[3]] = state.epoch
settle()
return 1
