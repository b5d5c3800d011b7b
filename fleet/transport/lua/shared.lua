-- What the acts share; put before each of them. Keys: fleet/keys.py. Algorithm: fleet/fairness.py, which this repeats.
-- KEYS[1] is the queue's own list. Every other key of the queue is derived from it and has its hash tag.
-- ARGV[1] is the time in microseconds, or '' for the server's clock.
local queue = KEYS[1]
local call = redis.call

local now = tonumber(ARGV[1])
if not now then
    local time = call('TIME')
    now = tonumber(time[1]) * 1000000 + tonumber(time[2])
end

local function exact(number)
    return string.format('%.17g', number)
end

-- Numbers of the queue as a whole ---------------------------------------------------------------

local state = {}
local state_names = {'v', 'busy', 'seq', 'lease', 'average', 'duty_at'}
for index, value in ipairs(call('HMGET', key.state, unpack(state_names))) do
    state[state_names[index]] = tonumber(value) or 0
end

local function set_state(name, value)
    state[name] = value
    call('HSET', key.state, name, exact(value))
end

local function count(name, by)
    call('HINCRBY', key.counters, name, by or 1)
end

-- Owners ----------------------------------------------------------------------------------------

local owner_names = {
    'weight', 'cap', 'paused', 'rate', 'burst', 'tat', 'v', 'n', 'S', 'P', 'ready', 'busy', 'sv',
}
local owner_defaults = {weight = 1, burst = 1}
local owners = {}

local function owner_of(name)
    local owner = owners[name]
    if owner then
        return owner
    end
    owner = {name = name}
    local values = call('HMGET', key.owner .. name, unpack(owner_names))
    for index, field in ipairs(owner_names) do
        owner[field] = tonumber(values[index]) or owner_defaults[field] or 0
    end
    if not values[1] then
        call('ZADD', key.owners, 0, name)
        call('HSET', key.owner .. name, 'weight', 1)
    end
    owner.stored = {}
    for _, field in ipairs(owner_names) do
        owner.stored[field] = owner[field]
    end
    owners[name] = owner
    return owner
end

-- Every act ends with this.
local function store_owners()
    for name, owner in pairs(owners) do
        local changed = {}
        for _, field in ipairs(owner_names) do
            if owner[field] ~= owner.stored[field] then
                changed[#changed + 1] = field
                changed[#changed + 1] = exact(owner[field])
            end
        end
        if #changed > 0 then
            call('HSET', key.owner .. name, unpack(changed))
        end
    end
end

local function in_flight(owner)
    return math.max(owner.P, owner.n * now - owner.S) / owner.weight
end

local function effective(owner)
    return owner.v + in_flight(owner)
end

local function may_run(owner)
    return owner.ready > 0 and owner.paused == 0 and (owner.cap == 0 or owner.n < owner.cap)
end

local function rests_until(owner)
    if owner.rate == 0 then
        return 0
    end
    local free_at = owner.tat - owner.burst * 1000000 / owner.rate
    return free_at > now and free_at or 0
end

local function wake(number)
    call('ZREMRANGEBYSCORE', key.sleepers, '-inf', now - 1000000)
    local sleepers = call('ZPOPMIN', key.sleepers, number)
    for _ = 1, #sleepers / 2 do
        call('RPUSH', key.wake, '1')
    end
    if #sleepers > 0 then
        call('PEXPIRE', key.wake, 10000)
    end
end

-- Put the owner where it belongs now: eligible, resting or neither; true when it has become eligible.
local function place(owner)
    local score = call('ZSCORE', key.eligible, owner.name)
    if not may_run(owner) then
        call('ZREM', key.resting, owner.name)
        if score then
            call('ZREM', key.eligible, owner.name)
        end
    else
        local rest = rests_until(owner)
        if rest > 0 then
            call('ZADD', key.resting, exact(rest), owner.name)
            if score then
                call('ZREM', key.eligible, owner.name)
            end
        else
            call('ZREM', key.resting, owner.name)
            if not score then
                if owner.busy ~= state.busy then
                    owner.v = state.v - in_flight(owner)
                    owner.busy = state.busy
                else
                    owner.v = math.max(owner.v, state.v - in_flight(owner))
                end
            end
            call('ZADD', key.eligible, exact(effective(owner)), owner.name)
            return not score
        end
    end
    if score and call('ZCARD', key.eligible) == 0 then
        set_state('busy', state.busy + 1)
    end
    return false
end

-- Messages --------------------------------------------------------------------------------------
-- meta: owner, submission, lock, task, order score, deadline (0 = none), when it was published.

local function meta_of(id)
    local packed = call('HGET', key.meta, id)
    return packed and cmsgpack.unpack(packed)
end

local function forget(id)
    call('HDEL', key.meta, id)
    call('HDEL', key.body, id)
end

local function ready_key(owner, submission)
    return key.ready .. owner .. '|' .. submission
end

-- Make a message ready, or park it behind its lock; true when it is ready. The caller places the
-- owner afterwards. `is_first` of those that are parked: it goes past the others.
local function make_ready(id, meta, is_first)
    call('RPUSH', queue, '')
    if meta.lock ~= '' and not is_first then
        local parked = key.parked .. meta.lock
        if call('HEXISTS', key.locks, meta.lock) == 1 or call('EXISTS', parked) == 1 then
            call('ZADD', parked, exact(meta.order), id)
            return false
        end
    end
    local owner = owner_of(meta.owner)
    local submissions = key.submissions .. meta.owner
    owner.ready = owner.ready + call('ZADD', ready_key(meta.owner, meta.submission), exact(meta.order), id)
    if not call('ZSCORE', submissions, meta.submission) then
        call('ZADD', submissions, exact(owner.sv), meta.submission)
    end
    return true
end

-- The reverse, for a message that is not parked.
local function take_out(id, meta)
    local owner = owner_of(meta.owner)
    local list = ready_key(meta.owner, meta.submission)
    if call('ZREM', list, id) == 1 then
        owner.ready = owner.ready - 1
        call('RPOP', queue)
    end
    if call('EXISTS', list) == 0 then
        call('ZREM', key.submissions .. meta.owner, meta.submission)
    end
end

-- A lock is free: the first message parked behind it is ready again; its owner is placed.
local function free_lock(lock, id)
    if lock == '' or call('HGET', key.locks, lock) ~= id then
        return
    end
    call('HDEL', key.locks, lock)
    local first = call('ZPOPMIN', key.parked .. lock)[1]
    local meta = first and meta_of(first)
    if meta then
        call('RPOP', queue) -- its placeholder was there already
        make_ready(first, meta, true)
        if place(owner_of(meta.owner)) then
            wake(1)
        end
    end
end

-- Leases ----------------------------------------------------------------------------------------

-- The lease of this number, if it is this worker's; nil otherwise.
local function lease_of(id, number, worker)
    local packed = call('HGET', key.leases, id)
    local lease = packed and cmsgpack.unpack(packed)
    if lease and lease.number == tonumber(number) and lease.worker == worker then
        return lease
    end
end

local function average(old, run)
    return old and old + 0.2 * (run - old) or run
end

-- End the charging of a lease; `run` is in microseconds, nil when it did not run to an end.
local function finish(id, lease, run)
    local owner = owner_of(lease.owner)
    owner.n = owner.n - 1
    owner.S = owner.S - lease.at
    owner.P = owner.P - lease.expected
    owner.v = owner.v + (run or 0) / owner.weight
    local submissions = key.submissions .. lease.owner
    if call('ZSCORE', submissions, lease.submission) then
        call('ZINCRBY', submissions, exact((run or 0) - lease.expected), lease.submission)
    end
    if run then
        call('HINCRBY', key.owner .. lease.owner, 'served', string.format('%.0f', run))
        call('HINCRBY', key.owner .. lease.owner, 'finished', 1)
        local known = tonumber(call('HGET', key.expected, lease.task) or '')
        call('HSET', key.expected, lease.task, exact(average(known, run)))
        set_state('average', average(state.average > 0 and state.average, run))
    end
    lease.finished = 1
    free_lock(lease.lock, id)
    if place(owner) then
        wake(1)
    end
end

local function drop_lease(id, lease)
    call('HDEL', key.leases, id)
    call('SREM', key.held .. lease.worker, id)
end

-- End a lease and make its message ready again, at its old place.
local function put_back(id, lease, delay)
    if lease.finished == 0 then
        finish(id, lease)
    end
    drop_lease(id, lease)
    local meta = meta_of(id)
    if not meta then
        return
    end
    if delay and delay > 0 then
        call('ZADD', key.delayed, exact(now + delay), id)
    elseif make_ready(id, meta) and place(owner_of(meta.owner)) then
        wake(1)
    end
end

-- Put back up to so many messages of a worker, which is forgotten when it has no more; how many.
local function put_back_some(worker, limit)
    local ids = call('SRANDMEMBER', key.held .. worker, limit)
    for _, id in ipairs(ids) do
        local lease = cmsgpack.unpack(call('HGET', key.leases, id))
        put_back(id, lease)
    end
    if #ids < limit then
        call('ZREM', key.workers, worker)
        call('ZREM', key.sleepers, worker)
        call('HDEL', key.takes, worker)
    end
    return #ids
end

-- In and out ------------------------------------------------------------------------------------

-- Remove a message that nobody holds; false when somebody does, or when there is none.
local function withdraw(id)
    local meta = meta_of(id)
    if not meta or call('HEXISTS', key.leases, id) == 1 then
        return false
    end
    if call('ZREM', key.delayed, id) == 0 then
        if meta.lock ~= '' and call('ZREM', key.parked .. meta.lock, id) == 1 then
            call('RPOP', queue)
        else
            take_out(id, meta)
            place(owner_of(meta.owner))
        end
    end
    forget(id)
    return true
end

-- Put messages in, from groups of nine values (see enqueue); how many were new.
local function enqueue(values, first)
    local new, takeable, is_sooner = 0, 0, false
    local soonest = tonumber(call('ZRANGE', key.delayed, 0, 0, 'WITHSCORES')[2])
    local touched = {}
    for at = first, #values, 9 do
        local id = values[at]
        if call('HEXISTS', key.meta, id) == 1 then
            count('duplicates')
        else
            new = new + 1
            local delay, deadline = tonumber(values[at + 4]), tonumber(values[at + 5])
            state.seq = math.max(now, state.seq + 1)
            local meta = {
                owner = values[at + 1],
                submission = values[at + 2],
                lock = values[at + 6],
                task = values[at + 7],
                order = state.seq + delay - values[at + 3] * AGEING,
                deadline = deadline and now + deadline or 0,
                at = now,
            }
            call('HSET', key.meta, id, cmsgpack.pack(meta))
            call('HSET', key.body, id, values[at + 8])
            if delay > 0 then
                call('ZADD', key.delayed, exact(now + delay), id)
                is_sooner = is_sooner or not soonest or now + delay < soonest
            elseif make_ready(id, meta) then
                touched[meta.owner] = (touched[meta.owner] or 0) + 1
            end
        end
    end
    set_state('seq', state.seq)
    for name, messages in pairs(touched) do
        place(owner_of(name))
        if call('ZSCORE', key.eligible, name) then
            takeable = takeable + messages
        end
    end
    if takeable > 0 or is_sooner then
        wake(math.max(takeable, 1))
    end
    return new
end
