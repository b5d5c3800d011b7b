-- repair: put keys of the wrong type aside, and rebuild the queue from what can be read.
-- KEYS[1]  the queue
-- ARGV     how long keys stay aside (s), how many at most, and 1 if an act has failed over some
--          wrong value
-- Result   nothing if no key is wrong, and no value or one was repaired within the last second;
--          else {how many messages are in the plain list again, names of the wrong keys}
-- Keeps    a message with a body stays leased, or is put into the plain list for adoption; the
--          sweep makes hints again that are not leased; as after a flush, nothing is given out
--          before the queue is told the owners' settings, and live workers have named their leases
-- Cost     O(keys of the database + messages): this is rare
-- It does not use the shared parts, which read keys that may be wrong.
local queue, call = KEYS[1], redis.call
local time = call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])

local function keys_from(start)
    local pattern = start:gsub('[%*%?%[%]\\]', '\\%0') .. '*'
    local found, seen, cursor = {}, {}, '0'
    repeat
        local reply = call('SCAN', cursor, 'MATCH', pattern, 'COUNT', 1000)
        cursor = reply[1]
        for _, name in ipairs(reply[2]) do
            if not seen[name] then
                seen[name] = true
                found[#found + 1] = name
            end
        end
    until cursor == '0'
    return found
end

-- Wrong keys ------------------------------------------------------------------------------------

-- The keys of the right type, by prefix.
local right, wrong = {}, {}

local function look(name, label, expected)
    local kind = call('TYPE', name).ok
    if kind == expected then
        right[label] = right[label] or {}
        table.insert(right[label], name)
    elseif kind ~= 'none' then
        wrong[#wrong + 1] = name
    end
end

look(queue, 'list', 'list')
for _, step in ipairs({'3', '6', '9'}) do
    look(queue .. '\6\22' .. step, 'list', 'list')
end
for _, name in ipairs(keys_from(base)) do
    local rest = name:sub(#base + 1)
    local label = rest:match('^[^:]+:') or rest
    if types[label] then
        look(name, label, types[label])
    end
end
if call('PTTL', mended_key) > 1000 or call('PTTL', mended_key) == -1 then
    call('DEL', mended_key) -- other software made it
end
if #wrong == 0 and (ARGV[3] ~= '1' or not call('SET', mended_key, '1', 'NX', 'PX', 1000)) then
    return {}
end

local room = tonumber(ARGV[2]) - #keys_from(wrong_base)
for _, name in ipairs(wrong) do
    local rest = name:sub(1, #base) == base and name:sub(#base + 1) or name
    -- guard: what is put aside is bounded
    if room > 0 then
        call('RENAME', name, wrong_base .. rest)
        call('EXPIRE', wrong_base .. rest, ARGV[1])
        room = room - 1
    else
        call('DEL', name)
    end
end

-- Leases stay ------------------------------------------------------------------------------------

local MOST = 2 ^ 53
local function is_sound(number)
    return type(number) == 'number' and number > -MOST and number < MOST
end

local function are_texts(...)
    for index = 1, 4 do
        if type(select(index, ...)) ~= 'string' then
            return false
        end
    end
    return true
end

-- The facts of a message, if they can be read: see shared/messages.lua.
local function meta_of(id)
    local packed = call('HGET', key.meta, id)
    if not packed then
        return nil
    end
    local is_read, owner, submission, lock, task, order, deadline, at, priority =
        pcall(cmsgpack.unpack, packed)
    local is_meta = is_read and are_texts(owner, submission, lock, task) and is_sound(order)
        and is_sound(deadline) and is_sound(at) and is_sound(priority or 0)
    return is_meta and packed or nil
end

-- The lease in these bytes with its message and body, if it can be read: see shared/leases.lua.
local function lease_of(id, packed)
    local is_read, number, at, expected, owner, submission, lock, task =
        pcall(cmsgpack.unpack, packed)
    if not is_read or not is_sound(number) or call('HEXISTS', key.body, id) == 0 then
        return nil
    elseif at == nil then
        local meta = meta_of(id)
        return meta and {meta = meta}
    elseif not (are_texts(owner, submission, lock, task) and is_sound(at) and is_sound(expected)) then
        return nil
    end
    local meta = meta_of(id) or cmsgpack.pack(owner, submission, lock, task, at, 0, at)
    return {at = at, expected = expected, owner = owner, lock = lock, meta = meta}
end

-- Remove values that acts cannot use. A worker whose last call is in the future would never expire.
local function drop_unread(name, kind, is_right)
    if right[kind] == nil then
        return
    end
    local fields = call('HGETALL', name)
    for at = 1, #fields, 2 do
        if not is_right(fields[at + 1]) then
            call('HDEL', name, fields[at])
        end
    end
end
drop_unread(key.counters, 'counters', function(value)
    return value:match('^%-?%d+$') and #value < 16
end)
drop_unread(key.expected, 'expected', function(value)
    local number = tonumber(value)
    return number and number >= 0 and is_sound(number)
end)
drop_unread(key.takes, 'takes', function(value)
    local is_read, number, lease = pcall(cmsgpack.unpack, value)
    return is_read and is_sound(number) and is_sound(lease)
end)
if right.workers then
    for _, worker in ipairs(call('ZRANGEBYSCORE', key.workers, '(' .. now, '+inf')) do
        call('ZADD', key.workers, now, worker)
    end
end

local leases, metas = {}, {}
for _, held in ipairs(right['held:'] or {}) do
    call('ZADD', key.workers, 'NX', now, held:sub(#key.held + 1))
    local fields = call('HGETALL', held)
    for at = 1, #fields, 2 do
        local id = fields[at]
        local lease = lease_of(id, fields[at + 1])
        if lease and not leases[id] then
            leases[id] = lease
            metas[id] = lease.meta or nil
        else
            call('HDEL', held, id)
        end
    end
end

-- Waiting messages are published again -----------------------------------------------------------

-- Whether this is a hint (see fleet/contract.py).
local function is_hint(raw)
    if not raw:find('"run"', 1, true) then
        return false
    end
    local is_read, message = pcall(cjson.decode, raw)
    local headers = is_read and type(message) == 'table' and message.headers
    local facts = type(headers) == 'table' and headers[header]
    return type(facts) == 'table' and facts.run ~= nil
end

if right.list then
    call('LREM', queue, 0, '') -- the placeholders
end
local published, cursor = 0, '0'
repeat
    local reply = call('HSCAN', key.body, cursor, 'COUNT', 100)
    cursor = reply[1]
    for at = 1, #reply[2], 2 do
        local id, raw = reply[2][at], reply[2][at + 1]
        -- guard: what is leased is not published again by who mends
        if not leases[id] then
            call('HDEL', key.body, id)
            if raw ~= '' and not is_hint(raw) then
                call('RPUSH', queue, raw)
                published = published + 1
            end
        end
    end
until cursor == '0'

-- Everything else is removed ---------------------------------------------------------------------

local kept = {
    list = true, counters = true, quarantine = true, expected = true, body = true, workers = true,
    takes = true, ['held:'] = true,
}
for label, names in pairs(right) do
    if not kept[label] then
        for _, name in ipairs(names) do
            call('DEL', name)
        end
    end
end
for id, meta in pairs(metas) do
    call('HSET', key.meta, id, meta)
end
local running = {}
for id, lease in pairs(leases) do
    if lease.owner then
        local owner = running[lease.owner] or {count = 0, expected = 0, ran = 0}
        running[lease.owner] = owner
        -- guard: who mends counts what runs
        owner.count, owner.expected = owner.count + 1, owner.expected + lease.expected
        owner.ran = owner.ran + now - lease.at
        if lease.lock ~= '' then
            call('HSETNX', key.locks, lease.lock, id)
        end
    end
end
for name, owner in pairs(running) do
    call('ZADD', key.owners, 0, name)
    -- As a new owner, with its runs in flight: see shared/accounts.lua.
    call('HSET', key.accounts, name, cmsgpack.pack(
        1, 0, 0, 0, 1, 0, owner.count, owner.expected, owner.ran, now, 0, 0, 0, 0, 0, 0
    ))
end
redis.pcall('HINCRBY', key.counters, 'mended', 1)
return {published, unpack(wrong, 1, 100)}
