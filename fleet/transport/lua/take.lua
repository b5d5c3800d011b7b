-- take: choose the next messages, fairly, and lease them to a worker.
-- KEYS[1]  the queue
-- ARGV     now, worker, length of a lease (us), number of the last take whose reply has arrived,
--          slots: take this many messages at any cost, budget: beyond these, take messages whose
--          expected run times (us) are known and add up to no more, most messages, the epoch that
--          the worker knows (0 for none), number of the last lease that it knows; without these
--          two, it gets messages in any epoch
-- Result   {number of this take, sleep (ms; 0: there may be more), 1 if the list has messages of
--          a stock client, {ids past their deadline}, epoch, 1 if it is told, then {id, lease,
--          expected run time (us, '' if unknown), '1' if others may wait for its end, raw, '1'
--          if it was given back before} for each message}; no messages in another epoch than the
--          worker's, or in one that is not told yet
-- Keeps    a message has at most one lease; caps, pauses, rates and locks are kept; messages of
--          lost replies and dead workers go back to the front
-- Cost     O(log n) for each message; at most 100 fall due, and 100 come back, in one take
local worker, lease_us, confirmed = ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local slots, budget, most = tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])
local held = key.held .. worker

call('ZADD', key.workers, now, worker)
call('ZREM', key.sleepers, worker)

local known_epoch = tonumber(ARGV[8])
if known_epoch then
    local is_other = meet_epoch(known_epoch, tonumber(ARGV[9]))
    -- guard: what has forgotten gives nothing out
    if is_other or not is_open() then
        settle()
        return {confirmed, 100, 0, {}, state.epoch, is_told() and 1 or 0}
    end
end

-- Before the choice: returned and due messages --------------------------------------------------

-- The number of the worker's last take, and that of the first lease in it.
local take_number, first_lease = 0, 0
local last = call('HGET', key.takes, worker)
if last then
    take_number, first_lease = cmsgpack.unpack(last)
    if not is_sound(take_number + first_lease) then
        refuse('a take')
    end
end
-- guard: what was taken for a reply that was lost goes back
if take_number ~= confirmed then
    for _, lease in ipairs(leases_held(worker)) do
        if lease.number >= first_lease then
            put_back(lease)
            count('unconfirmed')
        end
    end
end

local long_ago = '(' .. exact(now - lease_us)
local gone = call('ZRANGEBYSCORE', key.workers, '-inf', long_ago, 'LIMIT', 0, 1)[1]
if gone then
    -- guard: what a worker that is gone held goes back
    count('rescued', put_back_some(gone, 100))
end

-- guard: what is delayed waits for its time
for _, id in ipairs(call('ZRANGEBYSCORE', key.delayed, '-inf', now, 'LIMIT', 0, 100)) do
    call('ZREM', key.delayed, id)
    local message = message_of(id)
    if message then
        make_ready(message)
    end
end
for _, name in ipairs(call('ZRANGEBYSCORE', key.resting, '-inf', now, 'LIMIT', 0, 100)) do
    local owner = owner_of(name)
    owner.may_rest = true -- also an owner that has no rate any more, or is unknown
    touch(owner)
end
place_touched()

-- The choice ------------------------------------------------------------------------------------

-- The eligible owner with the least virtual time; after 64 updates, the best so far.
local function foremost()
    for looks = 0, 64 do
        local name, score = unpack(call('ZRANGE', key.eligible, 0, 0, 'WITHSCORES'))
        if not name then
            return nil
        end
        local owner = owner_of(name)
        owner.score = tonumber(score)
        local start = effective(owner)
        if start <= owner.score or looks == 64 then
            return owner
        end
        -- Runs in flight have continued since this score was written.
        set_score(owner, start)
    end
end

local taken, ids, new_leases, diverted = {}, {}, {}, {}
local spent, turns = 0, 4 * most + 64
local is_empty = false

-- Messages of a line are read ahead: one at first, then ten, and one more to see whether there is
-- one. Taken messages are removed together.
local ahead = {}

local function remove_taken(read)
    if read and read.taken > 0 then
        call('ZREM', read.line, unpack(read.ids, 1, read.taken))
    end
end

-- Call it before other code reads the lines, and after the last message.
local function remove_all_taken()
    for _, read in pairs(ahead) do
        remove_taken(read)
    end
    ahead = {}
end

local function read_ahead(line)
    local before = ahead[line]
    if before and before.taken < before.size then
        return before
    end
    remove_taken(before)
    local read = {line = line, taken = 0, size = before and 10 or 1}
    read.ids = call('ZRANGE', line, 0, read.size)
    read.packed = #read.ids > 0 and call('HMGET', key.meta, unpack(read.ids)) or {}
    ahead[line] = read
    return read
end

-- The owner's next message, with its submission's virtual time and the read part of its line.
local function next_of(owner)
    local submissions = key.submissions .. owner.name
    local submission, turn = unpack(call('ZRANGE', submissions, 0, 0, 'WITHSCORES'))
    if not submission then
        -- Other software has changed the keys: continue with the messages that exist. The audit
        -- finds that some are missing.
        owner.ready, placeholders = 0, placeholders - owner.ready
        return nil
    end
    local read = read_ahead(ready_key(owner.name, submission))
    local id, packed = read.ids[read.taken + 1], read.packed[read.taken + 1]
    if packed then
        return read_message(id, packed), tonumber(turn), read
    end
    remove_all_taken()
    if id then
        take_out({id = id, owner = owner.name, submission = submission}) -- likewise
    else
        call('ZREM', submissions, submission)
        owner.joined = nil
    end
end

local function divert(message)
    remove_all_taken()
    remove_ready(message)
    forget({message.id})
    count('diverted')
    diverted[#diverted + 1] = message.id
end

local function lease(owner, message, turn, read, known)
    local average = state.average > 0 and state.average or UNKNOWN
    local expected = known or math.floor(average + 0.5)
    state.virtual, owner.turn = effective(owner), turn
    read.taken = read.taken + 1
    owner.ready, placeholders = owner.ready - 1, placeholders - 1
    if not read.ids[read.taken + 1] then
        call('ZREM', key.submissions .. owner.name, message.submission)
        owner.joined = nil
    else
        call('ZINCRBY', key.submissions .. owner.name, expected, message.submission)
    end
    -- Messages beyond the slots are not charged while they wait (see fleet/fairness/queue.py).
    local begins_at = #taken < slots and now or now + BUFFER
    start_run(owner, expected, begins_at)
    state.lease = state.lease + 1
    if message.lock ~= '' then
        call('HSET', key.locks, message.lock, message.id)
    end
    ids[#ids + 1] = message.id
    new_leases[#new_leases + 1] = message.id
    new_leases[#new_leases + 1] = cmsgpack.pack(
        state.lease, begins_at, expected, owner.name, message.submission, message.lock, message.task
    )
    local is_urgent = owner.cap > 0 or message.lock ~= ''
    local expected_run = known and exact(known) or ''
    taken[#taken + 1] = {
        message.id, state.lease, expected_run, is_urgent and '1' or '', '',
        message.returned and '1' or '',
    }
end

while #taken < most and turns > 0 do
    local owner = foremost()
    if not owner then
        is_empty = true
        break
    end
    turns = turns - 1
    local message, turn, read = next_of(owner)
    if message and message.deadline > 0 and message.deadline <= now then
        divert(message)
    elseif message and is_locked(message.lock) then
        remove_all_taken()
        take_out(message)
        park(message)
    elseif message then
        local known = run_time(message.task)
        known = known and math.floor(known + 0.5)
        if #taken >= slots then
            if not known or spent + known > budget then
                break
            end
            spent = spent + known
        end
        lease(owner, message, turn, read, known)
    end
    place(owner)
end
remove_all_taken()

for index, body in ipairs(fields_of(key.body, ids)) do
    taken[index][5] = body or ''
end
set_fields(held, new_leases)
if #taken > 0 then
    take_number = take_number + 1
    count('taken', #taken)
end
call('HSET', key.takes, worker, cmsgpack.pack(take_number, state.lease - #taken + 1))

-- A stock client wakes no worker: after one has been seen, workers check more often.
local steps = queue .. '\6\22'
local is_foreign = (call('LINDEX', queue, 0) or '') ~= ''
    or call('LLEN', queue) > state.placeholders
    or call('EXISTS', steps .. '3', steps .. '6', steps .. '9') > 0
if is_foreign and state.foreign_at + 60000000 < now then
    state.foreign_at = now
end

local function watch_us()
    local is_likely = state.foreign_at > 0 and now < state.foreign_at + 600000000
    return is_likely and 1000000 or 5000000
end

-- After the choice: one worker wakes at the next due time, the others sleep until a wake-up ------

local sleep = 0
if is_empty then
    local due = tonumber(call('ZRANGE', key.delayed, 0, 0, 'WITHSCORES')[2]) or math.huge
    local rested = tonumber(call('ZRANGE', key.resting, 0, 0, 'WITHSCORES')[2]) or math.huge
    due = math.min(due, rested)
    local watcher = call('HGET', key.state, 'duty')
    local is_absent = not watcher or watcher == worker or state.duty_at + 1000000 < now
    sleep = 5000000
    if is_absent or due < state.duty_at then
        sleep = math.max(1000, math.min(watch_us(), due - now))
        call('HSET', key.state, 'duty', worker)
        state.duty_at = now + sleep
    end
    call('ZADD', key.sleepers, now + sleep, worker)
    settle()
else
    end_watch(worker)
    settle()
    wake(1) -- there may be more: a sleeper takes it, and wakes the next
end

return {
    take_number,
    math.ceil(sleep / 1000),
    is_foreign and 1 or 0,
    diverted,
    state.epoch,
    is_told() and 1 or 0,
    unpack(taken),
}
