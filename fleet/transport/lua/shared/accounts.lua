-- Owners: fleet/fairness/accounts.py, line by line, and their places. Settle stores them. Packed as
-- weight, cap, paused, rate, burst, ready, running, expected, ran, ran_at, virtual, busy, turn, tat,
-- served, finished: one value to read and write instead of sixteen.
local NEW_OWNER = cmsgpack.pack(1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
local owners, touched, has_left = {}, {}, false

local function owner_of(name)
    local owner = owners[name]
    if owner then
        return owner
    end
    owner = {name = name, packed = call('HGET', key.accounts, name)}
    owner.weight, owner.cap, owner.paused, owner.rate, owner.burst, owner.ready, owner.running,
        owner.expected, owner.ran, owner.ran_at, owner.virtual, owner.busy, owner.turn, owner.tat,
        owner.served, owner.finished = cmsgpack.unpack(owner.packed or NEW_OWNER)
    local sum = owner.cap + owner.paused + owner.rate + owner.burst + owner.ready + owner.running
        + owner.expected + owner.ran + owner.ran_at + owner.virtual + owner.busy + owner.turn
        + owner.tat + owner.served + owner.finished
    if not (owner.weight > 0 and is_sound((owner.weight + sum) / 16)) then
        refuse('an account')
    end
    if not owner.packed then
        owner.ran_at = now -- it has been idle since then
    end
    owners[name] = owner
    return owner
end

-- Whether a new account has these settings.
local function has_defaults(weight, cap, paused, rate)
    return weight == 1 and cap == 0 and paused == 0 and rate == 0
end

local function pack_owner(owner)
    return cmsgpack.pack(
        owner.weight, owner.cap, owner.paused, owner.rate, owner.burst, owner.ready, owner.running,
        owner.expected, owner.ran, owner.ran_at, owner.virtual, owner.busy, owner.turn, owner.tat,
        owner.served, owner.finished
    )
end

-- Have settle place the owner.
local function touch(owner)
    if not owner.is_touched then
        owner.is_touched = true
        touched[#touched + 1] = owner
    end
end

local function store_owners()
    local changed = {}
    for name, owner in pairs(owners) do
        local packed = pack_owner(owner)
        if packed ~= owner.packed then
            changed[#changed + 1] = name
            changed[#changed + 1] = packed
        end
        if not owner.packed then
            call('ZADD', key.owners, 0, name)
        end
    end
    set_fields(key.accounts, changed)
end

-- The account -----------------------------------------------------------------------------------

local function ran(owner)
    return owner.ran + owner.running * (now - owner.ran_at)
end

local function in_flight(owner)
    return math.max(owner.expected, ran(owner)) / owner.weight
end

local function effective(owner)
    return owner.virtual + in_flight(owner)
end

local function may_run(owner)
    -- guard: a cap is kept in the queue
    local has_room = owner.cap == 0 or owner.running < owner.cap
    -- guard: a paused owner is not chosen
    return owner.ready > 0 and owner.paused == 0 and has_room
end

local function rests_until(owner)
    if owner.rate == 0 then
        return 0
    end
    local free_at = owner.tat - (owner.burst - 1) * 1000000 / owner.rate
    -- guard: a rate lets its owner rest
    return free_at > now and free_at or 0
end

local function enter(owner)
    local level = state.virtual - in_flight(owner)
    owner.virtual = owner.busy == state.busy and math.max(owner.virtual, level) or level
    owner.busy = state.busy
end

local function start_run(owner, expected, begins_at)
    owner.ran, owner.ran_at = ran(owner) - (begins_at - now), now
    owner.running = owner.running + 1
    owner.expected = owner.expected + expected
    if owner.rate > 0 then
        owner.tat = math.max(owner.tat, now) + 1000000 / owner.rate
    end
end

-- Refund the rate of a run that never began.
local function unstart_run(owner)
    if owner.rate > 0 and owner.tat > now then
        owner.tat = math.max(owner.tat - 1000000 / owner.rate, now)
    end
end

-- Count a run again that began at this time.
local function resume_run(owner, expected, at)
    owner.ran, owner.ran_at = ran(owner) + (now - at), now
    owner.running = owner.running + 1
    owner.expected = owner.expected + expected
end

local function end_run(owner, started_at, expected, run)
    owner.ran, owner.ran_at = ran(owner) - (now - started_at), now
    owner.running = owner.running - 1
    owner.expected = owner.expected - expected
    owner.virtual = owner.virtual + run / owner.weight
end

local function change(owner, weight, cap, paused, rate, burst)
    local carried = in_flight(owner) * owner.weight
    owner.virtual = owner.virtual + carried / owner.weight - carried / weight
    owner.weight, owner.cap, owner.paused = weight, cap, paused
    if owner.tat > now then
        owner.tat = rate > 0 and now + (owner.tat - now) * owner.rate / rate or 0
    end
    owner.rate, owner.burst = rate, burst
end

-- Where it stands -------------------------------------------------------------------------------

-- Its score among the eligible owners; false if it is not eligible.
local function score_of(owner)
    if owner.score == nil then
        owner.score = tonumber(call('ZSCORE', key.eligible, owner.name) or '') or false
    end
    return owner.score
end

local function set_score(owner, score)
    if score ~= owner.score then
        call('ZADD', key.eligible, score, owner.name)
        owner.score = score
    end
end

-- Make the owner eligible, resting or neither; true if it becomes eligible.
local function place(owner)
    local before, rest = score_of(owner), rests_until(owner)
    local is_eligible = may_run(owner) and rest == 0
    if is_eligible then
        if not before then
            enter(owner)
        end
        set_score(owner, effective(owner))
    elseif before then
        call('ZREM', key.eligible, owner.name)
        owner.score, has_left = false, true
    end
    if rest > 0 and may_run(owner) then
        call('ZADD', key.resting, rest, owner.name)
        owner.may_rest = true
        expect(rest)
    elseif owner.rate > 0 or owner.may_rest then
        call('ZREM', key.resting, owner.name)
    end
    return is_eligible and not before
end

-- Place the touched owners; return how many more messages may be taken now.
local function place_touched()
    local takeable = 0
    for _, owner in ipairs(touched) do
        local has_entered = place(owner)
        if has_entered then
            local room = owner.cap > 0 and owner.cap - owner.running or math.huge
            takeable = takeable + math.min(owner.ready, room)
        elseif owner.score then
            takeable = takeable + (owner.added or 0)
        end
        owner.is_touched, owner.added = false, nil
    end
    touched = {}
    return takeable
end

-- Every act that changes the queue ends with this.
local function settle()
    local takeable = place_touched()
    if has_left and call('EXISTS', key.eligible) == 0 then
        state.busy = state.busy + 1
    end
    store_owners()
    store_placeholders()
    store_numbers()
    local is_watched = state.duty_at >= now and state.duty_at <= soonest
    if takeable == 0 and soonest < math.huge and not is_watched then
        takeable = 1
    end
    if takeable > 0 then
        wake(takeable)
    end
    set_fields(key.body, bodies)
end
