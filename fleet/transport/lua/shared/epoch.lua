-- The epoch of the queue. A flush removes it; the next act begins a new one, and so does a worker
-- that knows a later lease than an older copy of the queue does. In a new epoch the queue gives
-- nothing out until it is told the owners' settings, and live workers have named their leases.
-- Epochs are growing numbers, mostly the time at which they began.
local DECLARE, PATIENCE = 1000000, 2000000

local function begin_epoch(after)
    state.epoch = math.max(now, after + 1)
    state.epoch_at, state.told, state.filled = now, 0, 0
    -- A single listener names its leases before it takes. If an earlier epoch was known, other
    -- workers may be reconnecting.
    local listeners = call('PUBLISH', epoch_channel, exact(state.epoch))
    state.awaits = (after > 0 or listeners > 1) and 1 or 0
end

-- Compare the epoch with the one that a caller knows (0 for none), and the last lease with its last
-- one; true if the caller knows another epoch.
local function meet_epoch(known, lease)
    -- guard: an older copy is known by its epoch
    local is_older = known > state.epoch or (known == state.epoch and lease > state.lease)
    if state.epoch == 0 or is_older then
        begin_epoch(math.max(known, state.epoch))
    end
    -- The number of a lease that a worker still holds must not be used again.
    state.lease = math.max(state.lease, lease)
    return known ~= 0 and known ~= state.epoch
end

local function is_told()
    return state.told == state.epoch
end

-- Whether the queue gives messages out. If nothing tells it the settings, it waits PATIENCE.
local function is_open()
    local age = now - state.epoch_at
    local has_heard = state.awaits == 0 or age >= DECLARE
    return age < 0 or age >= PATIENCE or (is_told() and has_heard)
end
