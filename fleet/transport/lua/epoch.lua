-- epoch: return the queue's epoch; an emptied queue begins a new one.
-- KEYS[1]  the queue
-- ARGV     now
-- Result   {epoch, 1 if it is told of its owners' settings, 1 if it is filled with all hints}
-- Keeps    -
-- Cost     O(1)
meet_epoch(0, 0)
settle()
return {state.epoch, is_told() and 1 or 0, state.filled == state.epoch and 1 or 0}
