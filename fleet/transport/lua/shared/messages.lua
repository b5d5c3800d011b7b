-- Messages: their facts, how they become ready and cease to be, and how they wait behind locks.
-- Packed, in this order: owner, submission, lock, task, order score, deadline (0 for none), when
-- it was published, priority, and 1 if a worker has given it back.
local function are_texts(...)
    for index = 1, 4 do
        if type(select(index, ...)) ~= 'string' then
            return false
        end
    end
    return true
end

local function read_message(id, packed)
    local owner, submission, lock, task, order, deadline, at, priority, returned =
        cmsgpack.unpack(packed)
    if not is_sound(order + deadline + at + (priority or 0)) or not are_texts(owner, submission, lock, task)
    then
        refuse('a message')
    end
    return {
        id = id,
        owner = owner,
        submission = submission,
        lock = lock,
        task = task,
        order = order,
        deadline = deadline,
        at = at,
        priority = priority or 0,
        returned = returned == 1,
    }
end

local function message_of(id)
    local packed = call('HGET', key.meta, id)
    return packed and read_message(id, packed) or nil
end

local function pack_message(message)
    return cmsgpack.pack(
        message.owner, message.submission, message.lock, message.task, message.order,
        message.deadline, message.at, message.priority, message.returned and 1 or 0
    )
end

local function store_message(message, body)
    call('HSET', key.meta, message.id, pack_message(message))
    call('HSET', key.body, message.id, body)
end

local function forget(ids)
    delete_fields(key.meta, ids)
    delete_fields(key.body, ids)
    delete_fields(key.strikes, ids)
    delete_fields(key.again, ids)
end

-- An owner's name has no '|', so these names are unambiguous.
local function ready_key(owner, submission)
    return key.ready .. owner .. '|' .. submission
end

local function parked_key(lock, owner)
    return key.parked .. owner .. '|' .. lock
end

local function is_locked(lock)
    return lock ~= '' and call('HEXISTS', key.locks, lock) == 1
end

local function park(message)
    local order = message.order
    call('ZADD', parked_key(message.lock, message.owner), order, message.id)
    call('ZADD', key.contenders .. message.lock, 'LT', order, message.owner)
    placeholders = placeholders + 1
end

-- False when it is not parked.
local function unpark(message)
    local line = parked_key(message.lock, message.owner)
    if message.lock == '' or call('ZREM', line, message.id) == 0 then
        return false
    end
    local first = call('ZRANGE', line, 0, 0, 'WITHSCORES')
    if first[1] then
        call('ZADD', key.contenders .. message.lock, first[2], message.owner)
    else
        call('ZREM', key.contenders .. message.lock, message.owner)
    end
    placeholders = placeholders - 1
    return true
end

-- Make a message ready, or park it if its lock is taken. After a rejection, its submission also
-- comes after the owner's others.
local function make_ready(message, is_rejected)
    -- guard: what is published behind a taken lock is parked
    if is_locked(message.lock) then
        park(message)
        return
    end
    local owner = owner_of(message.owner)
    local line = ready_key(message.owner, message.submission)
    if call('ZADD', line, message.order, message.id) == 1 then
        owner.ready = owner.ready + 1
        owner.added = (owner.added or 0) + 1
        placeholders = placeholders + 1
        if owner.joined ~= message.submission then
            local turn = owner.turn + (is_rejected and REJECTED or 0)
            call('ZADD', key.submissions .. message.owner, 'NX', turn, message.submission)
            owner.joined = message.submission
        end
    end
    touch(owner)
end

-- Make the owner's next message that is parked behind a free lock ready.
local function let_next(lock, name)
    local id = call('ZRANGE', parked_key(lock, name), 0, 0)[1]
    local message = id and message_of(id)
    if message and unpark(message) then
        make_ready(message)
    end
end

-- Free a lock: make the first parked message of each owner ready, for at most 100 owners. If only
-- one message were ready, a paused owner would block all others.
local function free_lock(lock, id)
    if lock == '' or call('HGET', key.locks, lock) ~= id then
        return
    end
    call('HDEL', key.locks, lock)
    for _, name in ipairs(call('ZRANGE', key.contenders .. lock, 0, 99)) do
        let_next(lock, name)
    end
end

-- Take a ready message out; false if it is not ready.
local function take_out(message)
    local line = ready_key(message.owner, message.submission)
    if call('ZREM', line, message.id) == 0 then
        return false
    end
    local owner = owner_of(message.owner)
    owner.ready = owner.ready - 1
    placeholders = placeholders - 1
    if call('EXISTS', line) == 0 then
        call('ZREM', key.submissions .. message.owner, message.submission)
        owner.joined = nil
    end
    touch(owner)
    return true
end

-- Remove a ready message; if its lock is free, make the next message for it ready.
local function remove_ready(message)
    if not take_out(message) then
        return false
    end
    -- guard: who is let to a lock and goes lets the next one
    if message.lock ~= '' and not is_locked(message.lock) then
        let_next(message.lock, message.owner)
    end
    return true
end

local function make_delayed(id, at)
    call('ZADD', key.delayed, at, id)
    expect(at)
end

-- Take a message out of the line in which it waits; false if it is in none.
local function take_from_lines(message)
    return call('ZREM', key.delayed, message.id) == 1
        or unpark(message)
        or remove_ready(message)
end

-- Where a message is: ready, parked, delayed or leased.
local function place_of(message)
    if call('ZSCORE', key.delayed, message.id) then
        return 'delayed'
    elseif call('ZSCORE', ready_key(message.owner, message.submission), message.id) then
        return 'ready'
    elseif call('ZSCORE', parked_key(message.lock, message.owner), message.id) then
        return 'parked'
    end
    return 'leased'
end

-- Remove messages that are not leased; return how many.
local function withdraw(ids)
    local gone = {}
    for _, id in ipairs(ids) do
        local message = message_of(id)
        if message and take_from_lines(message) then
            call('HDEL', key.meta, id)
            gone[#gone + 1] = id
        end
    end
    forget(gone)
    count('withdrawn', #gone)
    return #gone
end

-- Read a group of nine values (see enqueue); return the message, its body, and its delay.
local function read_group(values, at)
    local priority, delay = tonumber(values[at + 3]) or 0, tonumber(values[at + 4]) or 0
    local deadline = tonumber(values[at + 5])
    state.sequence = math.max(now, state.sequence + 1)
    local message = {
        id = values[at],
        owner = values[at + 1],
        submission = values[at + 2],
        lock = values[at + 6],
        task = values[at + 7],
        -- A message ages from its due time, also if that is in the past.
        order = state.sequence + delay - priority * AGEING,
        deadline = deadline and now + deadline or 0,
        at = now,
        priority = priority,
    }
    return message, values[at + 8], delay
end

-- Add the message of a group of nine values (see enqueue), unless its id is known.
local function put_in(values, at)
    local sequence = state.sequence
    local message, body, delay = read_group(values, at)
    -- guard: the same attempt published twice is one
    if call('HSETNX', key.meta, message.id, pack_message(message)) == 0 then
        state.sequence = sequence
        count('duplicates')
        -- Its worker may ack it without a run: see `drop`.
        call('HSET', key.again, message.id, 1)
        return
    end
    -- guard: a body is stored when all else has been
    bodies[#bodies + 1] = message.id
    bodies[#bodies + 1] = body
    owner_of(message.owner)
    if delay > 0 then
        make_delayed(message.id, now + delay)
    else
        make_ready(message)
    end
end

-- Count the added messages; return how many.
local function count_new()
    count('published', #bodies / 2)
    return #bodies / 2
end

-- Add messages from groups of nine values (see enqueue); return how many were new.
local function enqueue(values, first)
    for at = first, #values, 9 do
        put_in(values, at)
    end
    return count_new()
end
