-- The epoch: which filling of the queue this is. A flush takes it away; who finds none begins one,
-- and so does a worker that knows more than an older copy does. Until the queue has been told what
-- owners may have, and who lives has said what it holds, nothing is given out.
-- Epochs are numbers that grow, and mostly the time at which they began.
local DECLARE, PATIENCE = 1000000, 2000000

local function begin_epoch(after)
    state.epoch = math.max(now, after + 1)
    state.epoch_at, state.told, state.filled = now, 0, 0
    -- One that listens is alone, and takes only when it has said what it holds. Where somebody
    -- knew an epoch before this one, others may be on their way back to the server.
    local listeners = call('PUBLISH', epoch_channel, exact(state.epoch))
    state.awaits = (after > 0 or listeners > 1) and 1 or 0
end

-- Meet a caller that knows this epoch (0 for none) and has heard of leases up to this number; true
-- when what it knows is of another one.
local function meet_epoch(known, lease)
    -- guard: an older copy is known by its epoch
    local is_older = known > state.epoch or (known == state.epoch and lease > state.lease)
    if state.epoch == 0 or is_older then
        begin_epoch(math.max(known, state.epoch))
    end
    -- A number must not come again for who holds an old lease.
    state.lease = math.max(state.lease, lease)
    return known ~= 0 and known ~= state.epoch
end

local function is_told()
    return state.told == state.epoch
end

-- Whether the queue gives out again. Where nobody tells it anything, it waits no longer than so.
local function is_open()
    local age = now - state.epoch_at
    local has_heard = state.awaits == 0 or age >= DECLARE
    return age < 0 or age >= PATIENCE or (is_told() and has_heard)
end
