-- What every act begins with: the clock, the queue's numbers, and waking.
-- KEYS[1] is the queue's own list; every other key is derived from it, with its hash tag.
-- ARGV[1] is the time in microseconds, or '' for the server's clock.
local queue, call = KEYS[1], redis.call

local now = tonumber(ARGV[1])
if not now then
    local time = call('TIME')
    now = tonumber(time[1]) * 1000000 + tonumber(time[2])
end

-- What only a foreign hand has written: the act fails, and the queue begins anew (see repair.lua).
local function refuse(what)
    error('spoilt: ' .. what)
end

-- Whether a number is one that is written here; it fails for what is none.
local MOST = 2 ^ 53
local function is_sound(number)
    return number > -MOST and number < MOST
end

-- A number as text from which the same double is read; Redis writes its arguments so by itself.
local function exact(number)
    return string.format('%.17g', number)
end

-- Hand values over in parts of 1,000: Lua's stack takes no more than some thousands.
local function in_parts(values, act)
    for first = 1, #values, 1000 do
        act(unpack(values, first, math.min(first + 999, #values)))
    end
end

local function fields_of(hash, names)
    local values = {}
    in_parts(names, function(...)
        for _, value in ipairs(call('HMGET', hash, ...)) do
            values[#values + 1] = value
        end
    end)
    return values
end

local function delete_fields(hash, names)
    in_parts(names, function(...)
        call('HDEL', hash, ...)
    end)
end

local function set_fields(hash, pairs_of_them)
    in_parts(pairs_of_them, function(...)
        call('HSET', hash, ...)
    end)
end

-- Numbers, read now and stored by settle --------------------------------------------------------

local state, counts, run_times = {}, {}, {}
local state_names = {
    'virtual', 'busy', 'sequence', 'lease', 'average', 'duty_at', 'foreign_at',
    'epoch', 'epoch_at', 'awaits', 'told', 'filled', 'placeholders',
}
local stored_state = call('HMGET', key.state, unpack(state_names))
for index, name in ipairs(state_names) do
    stored_state[index] = tonumber(stored_state[index]) or 0
    state[name] = stored_state[index]
    if not is_sound(state[name]) then
        refuse(name)
    end
end

local function count(name, by)
    counts[name] = (counts[name] or 0) + (by or 1)
end

local function store_numbers()
    for index, name in ipairs(state_names) do
        if state[name] ~= stored_state[index] then
            call('HSET', key.state, name, state[name])
        end
    end
    for task, seconds in pairs(run_times) do
        if seconds then
            call('HSET', key.expected, task, seconds)
        end
    end
    for name, by in pairs(counts) do
        call('HINCRBY', key.counters, name, by)
    end
end

-- The mean run time of a task (us), false when none is known.
local function run_time(task)
    if run_times[task] == nil then
        local known = tonumber(call('HGET', key.expected, task) or '') or false
        if known and not (known >= 0 and is_sound(known)) then
            call('HDEL', key.expected, task)
            count('mended')
            known = false
        end
        run_times[task] = known
    end
    return run_times[task]
end

local function moved(mean, run)
    return mean and mean + 0.2 * (run - mean) or run
end

local function learn(task, run)
    run_times[task] = moved(run_time(task), run)
    state.average = moved(state.average > 0 and state.average, run)
end

-- A placeholder, empty, in the list for each message that is ready or parked; made true by settle.
-- They are counted, too: an empty string that somebody else has pushed looks like one.
local placeholders = 0

local function store_placeholders()
    state.placeholders = math.max(state.placeholders + placeholders, 0)
    if placeholders < 0 then
        call('LTRIM', queue, 0, placeholders - 1)
    end
    local texts = {}
    for number = 1, placeholders do
        texts[number] = ''
    end
    in_parts(texts, function(...)
        call('RPUSH', queue, ...)
    end)
end

-- The bodies of messages that were put in, each after its id. Settle stores them last: an act that
-- fails halfway, over a key of the wrong type, leaves no body, and may be done again (repair.lua).
local bodies = {}

-- Waking ----------------------------------------------------------------------------------------
-- A token wakes whoever of the sleepers has waited longest, so a token belongs to none of them:
-- there are at most as many tokens as sleepers, and a worker leaves the sleepers by itself.

local soonest = math.huge

-- Something may be taken at that time: somebody must be awake then.
local function expect(at)
    soonest = math.min(soonest, at)
end

local function wake(number)
    if call('ZCARD', key.sleepers) == 0 then
        return
    end
    call('ZREMRANGEBYSCORE', key.sleepers, '-inf', now - 1000000)
    local tokens = math.min(number, call('ZCARD', key.sleepers) - call('LLEN', key.wake))
    for _ = 1, tokens do
        call('RPUSH', key.wake, '1')
    end
    if tokens > 0 then
        call('PEXPIRE', key.wake, 10000)
    end
end

-- End a worker's watch over what time brings; true when it had it.
local function end_watch(worker)
    if call('HGET', key.state, 'duty') ~= worker then
        return false
    end
    call('HDEL', key.state, 'duty')
    state.duty_at = 0
    return true
end
