-- The base of every act: the clock, the queue's numbers, and wake-ups.
-- KEYS[1] is the queue's own list; every other key is derived from it, with its hash tag.
-- ARGV[1] is the time in microseconds, or '' for the server's clock.
local queue, call = KEYS[1], redis.call

local now = tonumber(ARGV[1])
if not now then
    local time = call('TIME')
    now = tonumber(time[1]) * 1000000 + tonumber(time[2])
end

-- Fail over a value that only other software can have written; repair.lua rebuilds the queue then.
local function refuse(what)
    error('spoilt: ' .. what)
end

-- Whether a number is one that scripts write; fails for other values.
local MOST = 2 ^ 53
local function is_sound(number)
    return number > -MOST and number < MOST
end

-- A number as text that is read as the same double; Redis formats arguments so by itself.
local function exact(number)
    return string.format('%.17g', number)
end

-- Pass values in parts of 1,000: Lua's stack is limited to some thousands.
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

-- The mean run time of a task (us), false if unknown.
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

-- The list has an empty placeholder for each message that is ready or parked; settle adjusts them.
-- They are counted as well, as other clients may push empty strings.
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

-- The bodies of added messages, each after its id. Settle stores them last: an act that fails
-- halfway, over a key of the wrong type, leaves no body, and can be repeated (repair.lua).
local bodies = {}

-- Waking ----------------------------------------------------------------------------------------
-- A token wakes the sleeper that has waited longest, so it belongs to no worker in particular. There
-- are at most as many tokens as sleepers, and a worker itself leaves the sleepers.

local soonest = math.huge

-- Messages may be available at that time: one worker must be awake then.
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

-- End a worker's watch over times to come; true if it was the watcher.
local function end_watch(worker)
    if call('HGET', key.state, 'duty') ~= worker then
        return false
    end
    call('HDEL', key.state, 'duty')
    state.duty_at = 0
    return true
end
