-- prime: the queue knows again what it had forgotten.
-- KEYS[1]  the queue
-- ARGV     now, the epoch in which it was told, what: 'told' of owners, 'filled' with hints
-- Result   1, or 0 when another epoch has begun meanwhile
-- Keeps    a queue that forgets in the middle is told again
-- Cost     O(1)
-- guard: a flush in the middle of a rebuild begins it again
if state.epoch ~= tonumber(ARGV[2]) then
    return 0
end
state[ARGV[3]] = state.epoch
settle()
return 1
