-- Leases: one message held by one worker. Stored by worker and message id, packed as number, start
-- time, expected run time, owner, submission, lock, task; a finished one only has its number.
local function read_lease(worker, id, packed)
    local number, at, expected, owner, submission, lock, task = cmsgpack.unpack(packed)
    local is_read = is_sound(number)
    if is_read and at ~= nil then
        is_read = is_sound(at + expected) and are_texts(owner, submission, lock, task)
    end
    if not is_read then
        refuse('a lease')
    end
    return {
        id = id,
        worker = worker,
        number = number,
        at = at,
        expected = expected,
        owner = owner,
        submission = submission,
        lock = lock,
        task = task,
        is_finished = at == nil,
    }
end

-- The leases of a worker that ARGV names from its third on, in groups of `width`: id, number, ….
-- {lease, where its group begins}, …; leases of other workers and repetitions are omitted.
local function leases_named(worker, width)
    local ids = {}
    for at = 3, #ARGV, width do
        ids[#ids + 1] = ARGV[at]
    end
    local named, seen = {}, {}
    for index, packed in ipairs(fields_of(key.held .. worker, ids)) do
        local id, at = ids[index], 3 + (index - 1) * width
        -- guard: an operation that is sent twice in one call counts once
        local lease = packed and not seen[id] and read_lease(worker, id, packed)
        if lease and lease.number == tonumber(ARGV[at + 1]) then
            seen[id] = true
            named[#named + 1] = {lease, at}
        end
    end
    return named
end

-- All leases of a worker, in the order in which they were taken.
local function leases_held(worker)
    local held = call('HGETALL', key.held .. worker)
    local leases = {}
    for at = 1, #held, 2 do
        leases[#leases + 1] = read_lease(worker, held[at], held[at + 1])
    end
    table.sort(leases, function(one, other)
        return one.number < other.number
    end)
    return leases
end

-- Lease a message again to the worker that has held it all the time.
local function resume_lease(worker, message, number, expected, at)
    local average = state.average > 0 and state.average or UNKNOWN
    local charged = expected or math.floor(average + 0.5)
    local owner = owner_of(message.owner)
    resume_run(owner, charged, at)
    touch(owner)
    if message.lock ~= '' then
        call('HSETNX', key.locks, message.lock, message.id)
    end
    call('HSET', key.held .. worker, message.id, cmsgpack.pack(
        number, at, charged, message.owner, message.submission, message.lock, message.task
    ))
end

-- End a lease's charge, and free its lock, unless that is done.
local function end_lease(lease, run)
    if lease.is_finished then
        return
    end
    lease.is_finished = true
    local owner = owner_of(lease.owner)
    end_run(owner, lease.at, lease.expected, run)
    if run ~= lease.expected then
        local more = run - lease.expected
        call('ZADD', key.submissions .. lease.owner, 'XX', 'INCR', more, lease.submission)
    end
    free_lock(lease.lock, lease.id)
    touch(owner)
end

-- Charge the owner for a run that has ended; true unless that is done.
local function charge(lease, run_us)
    if lease.is_finished then
        return false
    end
    local run, owner = math.max(tonumber(run_us) or 0, 0), owner_of(lease.owner)
    end_lease(lease, run)
    owner.served, owner.finished = owner.served + run, owner.finished + 1
    learn(lease.task, run)
    return true
end

-- End a lease and make its message ready again: at its old place or, if rejected, behind others.
-- A rejection without a run costs REJECTED, so that its owner is not first for ever.
local function put_back(lease, delay, is_rejected)
    end_lease(lease, is_rejected and REJECTED or 0)
    call('HDEL', key.held .. lease.worker, lease.id)
    call('HDEL', key.again, lease.id)
    local message = message_of(lease.id)
    if not message then
        return
    end
    if is_rejected then
        state.sequence = math.max(now, state.sequence + 1)
        -- guard: a rejected message goes behind its line
        message.order = state.sequence - message.priority * AGEING
    end
    if is_rejected or not message.returned then
        -- guard: a message that comes again says so
        message.returned = true
        call('HSET', key.meta, message.id, pack_message(message))
    end
    if delay and delay > 0 then
        make_delayed(lease.id, now + delay)
    else
        make_ready(message, is_rejected)
    end
end

-- Put back at most `limit` messages of a worker; forget it if it had fewer; return how many.
local function put_back_some(worker, limit)
    local leases = leases_held(worker)
    local number = math.min(#leases, limit)
    for index = 1, number do
        put_back(leases[index])
    end
    if number < limit then
        call('ZREM', key.workers, worker)
        call('ZREM', key.sleepers, worker)
        call('HDEL', key.takes, worker)
    end
    return number
end

-- Remove a worker's messages. One that never ran and was published again meanwhile is made ready
-- instead.
local function drop(leases)
    local ids = {}
    for _, lease in ipairs(leases) do
        if not lease.is_finished then
            unstart_run(owner_of(lease.owner))
        end
        -- guard: what is published while its worker drops it is ready again
        if not lease.is_finished and call('HEXISTS', key.again, lease.id) == 1 then
            put_back(lease)
        else
            end_lease(lease, 0)
            ids[#ids + 1] = lease.id
        end
    end
    if #ids > 0 then
        -- In this order: `repair.lua` publishes a message again that has a body and no lease.
        -- guard: a message is forgotten before its lease
        forget(ids)
        delete_fields(key.held .. leases[1].worker, ids)
    end
end
