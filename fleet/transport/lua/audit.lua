-- audit: compare counts with keys, and fail if they differ: then the queue is rebuilt.
-- KEYS[1]  the queue
-- ARGV     now
-- Result   how many lines were checked; 0 if there was an audit within the last seconds
-- Keeps    a message is in one place: ready in a line, parked, delayed or leased. Finds changes by
--          other software that no act would notice
-- Cost     O(owners + lines + leases), while messages are parked also O(keys of the database); the
--          more it checks, the longer the pause after it
local rest = call('PTTL', audited_key) -- below 0 if it does not exist or never expires
if rest > 0 and rest < 1000000 then
    return 0
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

-- Whether an owner is not where its account says. A score may be too low: it does not include the
-- latest time in flight.
local function is_misplaced(owner)
    local score, rest = score_of(owner), tonumber(call('ZSCORE', key.resting, owner.name) or '')
    if not may_run(owner) then
        return score ~= false
    elseif score then
        return score > effective(owner) + 1000000
    end
    return not rest or rest > math.max(now, rests_until(owner)) + 1000000
end

local held, running, holders = 0, {}, {}
for _, worker in ipairs(call('ZRANGE', key.workers, 0, -1)) do
    for _, lease in ipairs(leases_held(worker)) do
        held = held + 1
        if not lease.is_finished then
            running[lease.owner] = (running[lease.owner] or 0) + 1
            holders[lease.id] = true
        end
    end
end
local locks = call('HVALS', key.locks)
for _, id in ipairs(locks) do
    if not holders[id] then
        refuse('a lock that nobody holds')
    end
end

local lines, ready = 0, 0
for _, name in ipairs(call('ZRANGE', key.owners, 0, -1)) do
    local owner, its_own = owner_of(name), 0
    local submissions = call('ZRANGE', key.submissions .. name, 0, -1, 'WITHSCORES')
    for at = 1, #submissions, 2 do
        local line = ready_key(name, submissions[at])
        lines, its_own = lines + 1, its_own + call('ZCARD', line)
        if not is_sound(tonumber(submissions[at + 1])) or call('ZCOUNT', line, FAR, '+inf') > 0 then
            refuse('a place in a line')
        end
    end
    if its_own ~= owner.ready or owner.running ~= (running[name] or 0) then
        refuse('the numbers of an owner')
    end
    ready = ready + its_own
    if is_misplaced(owner) then
        count('mended')
        owner.may_rest = true
        touch(owner)
    end
end

local parked = 0
if state.placeholders > ready then
    for _, line in ipairs(call('KEYS', key.parked:gsub('[%*%?%[%]\\]', '\\%0') .. '*')) do
        local owner, lock = line:sub(#key.parked + 1):match('^([^|]*)|(.*)$')
        if not call('ZSCORE', key.contenders .. (lock or ''), owner or '') then
            refuse('a line behind a lock')
        end
        parked = parked + call('ZCARD', line)
    end
    lines = lines + call('DBSIZE') / 100
end
local waiting = state.placeholders + call('ZCARD', key.delayed)
if
    call('HLEN', key.meta) ~= waiting + held
    or ready + parked ~= state.placeholders
    or call('LLEN', queue) < state.placeholders
then
    refuse('the number of messages')
end
settle()
call('SET', audited_key, '1', 'PX', 3000 + math.floor(lines))
return math.floor(lines)
