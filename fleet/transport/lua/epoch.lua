-- epoch: look which filling of the queue this is; an empty one begins its first.
-- KEYS[1]  the queue
-- ARGV     now
-- Result   {epoch, 1 when it has been told what owners may have, 1 when all hints were made again}
-- Keeps    -
-- Cost     O(1)
meet_epoch(0, 0)
settle()
return {state.epoch, is_told() and 1 or 0, state.filled == state.epoch and 1 or 0}
