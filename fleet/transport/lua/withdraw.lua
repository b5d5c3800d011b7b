-- withdraw: remove messages that are not leased.
-- KEYS[1]  the queue
-- ARGV     now, then ids
-- Result   how many were removed; leased ones stay
-- Keeps    one placeholder for each message that is ready or parked
-- Cost     O(log n) for each
local removed = withdraw({unpack(ARGV, 2)})
settle()
return removed
