-- audit: compare a page of owners and a page of messages with the other keys, and fail if they
-- differ: then the queue is rebuilt. Owners that have been idle for a day are forgotten.
-- KEYS[1]  the queue
-- ARGV     now
-- Result   {owners checked, messages checked, owners forgotten}; nothing if there was an audit
--          within the last seconds
-- Keeps    a message is in one place: ready in a line, parked, delayed or leased. Finds changes by
--          other software that no act would notice
-- Cost     O(PAGE owners with their lines + PAGE messages + leases), however many there are: the
--          next call continues behind these pages
local PAGE, PAUSE_MS, IDLE = 200, 3000, 86400 * 1000000

local rest = call('PTTL', audited_key) -- below 0 if it does not exist or never expires
if rest > 0 and rest < 1000000 then
    return {}
end

-- No act writes times further away than this.
local FAR = '(' .. exact(now + 10 * 366 * 86400 * 1000000)
call('ZREMRANGEBYSCORE', key.sleepers, '(' .. exact(now + 60000000), '+inf')
for _, worker in ipairs(call('ZRANGEBYSCORE', key.workers, '(' .. exact(now + 60000000), '+inf')) do
    call('ZADD', key.workers, now, worker)
    count('mended')
end
if call('ZCOUNT', key.delayed, FAR, '+inf') > 0 then
    refuse('a delay')
end

-- The next fields of a hash, with their values; the cursor is stored for the next call.
local function page_of(hash, cursor_name)
    local cursor = call('HGET', key.state, cursor_name)
    if not (cursor and cursor:match('^%d+$') and #cursor < 20) then
        cursor = '0'
    end
    local reply = call('HSCAN', hash, cursor, 'COUNT', PAGE)
    call('HSET', key.state, cursor_name, reply[1])
    return reply[2]
end

-- Leases and locks ------------------------------------------------------------------------------

local held, running, holders = 0, {}, {}
for _, worker in ipairs(call('ZRANGE', key.workers, 0, -1)) do
    for _, lease in ipairs(leases_held(worker)) do
        held = held + 1
        holders[lease.id] = lease
        if not lease.is_finished then
            running[lease.owner] = (running[lease.owner] or 0) + 1
        end
    end
end
for _, id in ipairs(call('HVALS', key.locks)) do
    if not holders[id] or holders[id].is_finished then
        refuse('a lock that nobody holds')
    end
end

-- Owners ----------------------------------------------------------------------------------------

-- Whether an owner is not where its account says. A score may be too low: it does not include the
-- latest time in flight.
local function is_misplaced(owner)
    local score, rests = score_of(owner), tonumber(call('ZSCORE', key.resting, owner.name) or '')
    if not may_run(owner) then
        return score ~= false
    elseif score then
        return score > effective(owner) + 1000000
    end
    return not rests or rests > math.max(now, rests_until(owner)) + 1000000
end

-- Whether a new account would serve this owner as well: it has no work, no settings and no debt.
local function may_leave(owner)
    local is_idle = owner.ready == 0 and owner.running == 0 and now - owner.ran_at > IDLE
    local has_debt = owner.busy == state.busy and owner.virtual > state.virtual
    return is_idle and not has_debt
        and has_defaults(owner.weight, owner.cap, owner.paused, owner.rate)
end

local function check_lines(owner)
    local submissions = call('ZRANGE', key.submissions .. owner.name, 0, -1, 'WITHSCORES')
    local ready = 0
    for at = 1, #submissions, 2 do
        local line = ready_key(owner.name, submissions[at])
        ready = ready + call('ZCARD', line)
        if not is_sound(tonumber(submissions[at + 1])) or call('ZCOUNT', line, FAR, '+inf') > 0 then
            refuse('a place in a line')
        end
    end
    if ready ~= owner.ready or owner.running ~= (running[owner.name] or 0) then
        refuse('the numbers of an owner')
    end
end

local accounts, left = page_of(key.accounts, 'audited_owner'), {}
for at = 1, #accounts, 2 do
    local owner = owner_of(accounts[at])
    check_lines(owner)
    if is_misplaced(owner) then
        count('mended')
        owner.may_rest = true
        touch(owner)
    elseif may_leave(owner) then
        left[#left + 1] = owner.name
        owners[owner.name] = nil -- settle would store it again
    end
end
delete_fields(key.accounts, left)
in_parts(left, function(...)
    call('ZREM', key.owners, ...)
    call('ZREM', key.resting, ...)
end)
if call('HLEN', key.accounts) ~= call('ZCARD', key.owners) then
    refuse('the number of owners')
end

-- Messages --------------------------------------------------------------------------------------

local function is_parked(message)
    return message.lock ~= ''
        and call('ZSCORE', parked_key(message.lock, message.owner), message.id)
        and call('ZSCORE', key.contenders .. message.lock, message.owner)
end

local metas = page_of(key.meta, 'audited_message')
for at = 1, #metas, 2 do
    local message = read_message(metas[at], metas[at + 1])
    local is_in_a_line = call('ZSCORE', ready_key(message.owner, message.submission), message.id)
        or call('ZSCORE', key.delayed, message.id)
        or is_parked(message)
    if not is_in_a_line == not holders[message.id] then
        refuse('the place of a message')
    end
end
if
    call('HLEN', key.meta) ~= state.placeholders + call('ZCARD', key.delayed) + held
    or call('LLEN', queue) < state.placeholders
then
    refuse('the number of messages')
end
settle()
call('SET', audited_key, '1', 'PX', PAUSE_MS)
return {#accounts / 2, #metas / 2, #left}
