-- hints: add messages that differ in some values only.
-- KEYS[1]  the queue
-- ARGV     now; priority (0-9, higher first), task; how many texts follow, in turn the message's own
--          and the name of the value between them ('run', 'token', 'owner', 'submission', 'job',
--          'lock'); then for each message run, token, owner, submission ('' for none), job ('' for
--          none), delay (us), the lock's name within the owner ('' for none), deadline (us from
--          now, '' for none)
-- Result   how many were new; one whose id is known is not added again
-- Keeps    what `enqueue` keeps
-- Cost     O(log n) for each message
-- The texts of a thousand messages would be most of the data, and one command for each key most of
-- the work. So the text is sent once, and ready messages are added line by line.
meet_epoch(0, 0)
local priority, task = tonumber(ARGV[2]), ARGV[3]
local first = 5 + tonumber(ARGV[4])
local pieces, holes = {}, {}
for at = 5, first - 1 do
    pieces[#pieces + 1] = ARGV[at]
    if #pieces % 2 == 0 then
        holes[#holes + 1] = {#pieces, ARGV[at]}
    end
end

local value = {}
local function text_of(at)
    local submission, lock = ARGV[at + 3], ARGV[at + 6]
    value.run, value.token, value.job = ARGV[at], ARGV[at + 1], ARGV[at + 4]
    value.owner = '"' .. ARGV[at + 2] .. '"'
    value.submission = submission == '' and 'null' or submission
    value.lock = lock ~= '' and cjson.encode(lock)
    for _, hole in ipairs(holes) do
        pieces[hole[1]] = value[hole[2]]
    end
    return table.concat(pieces)
end

-- By owner and submission: the line's messages, each after its order.
local lines, packed, fresh = {}, {}, {}

local function put_in_line(at, id)
    local owner, submission, deadline = ARGV[at + 2], ARGV[at + 3], ARGV[at + 7]
    -- guard: a hint has a deadline of its own
    deadline = deadline == '' and 0 or now + deadline
    local name = owner .. '|' .. submission
    local line = lines[name]
    if not line then
        line = {owner = owner_of(owner), submission = submission, waiting = {}}
        lines[name] = line
    end
    fresh[id] = true
    state.sequence = math.max(now, state.sequence + 1)
    local order = state.sequence - priority * AGEING
    line.waiting[#line.waiting + 1] = order
    line.waiting[#line.waiting + 1] = id
    packed[#packed + 1] = id
    packed[#packed + 1] = cmsgpack.pack(owner, submission, '', task, order, deadline, now, priority)
    bodies[#bodies + 1] = id
    bodies[#bodies + 1] = text_of(at)
end

local function make_line_ready(line)
    local owner, added = line.owner, 0
    in_parts(line.waiting, function(...)
        added = added + call('ZADD', ready_key(owner.name, line.submission), ...)
    end)
    owner.ready = owner.ready + added
    owner.added = (owner.added or 0) + added
    placeholders = placeholders + added
    call('ZADD', key.submissions .. owner.name, 'NX', owner.turn, line.submission)
    touch(owner)
end

local group = {[4] = ARGV[2], [8] = task}
local function put_elsewhere(at, id)
    local owner, lock = ARGV[at + 2], ARGV[at + 6]
    group[1], group[2], group[3], group[5] = id, owner, ARGV[at + 3], ARGV[at + 5]
    group[6], group[7] = ARGV[at + 7], lock == '' and '' or owner .. ':' .. lock
    group[9] = text_of(at)
    put_in(group, 1)
end

local ids = {}
for at = first, #ARGV, 8 do
    ids[#ids + 1] = ARGV[at] .. ':' .. ARGV[at + 1]
end
local known = fields_of(key.meta, ids)
for number, id in ipairs(ids) do
    local at = first + (number - 1) * 8
    if ARGV[at + 5] ~= '0' or ARGV[at + 6] ~= '' then
        put_elsewhere(at, id)
    -- guard: a hint that is known is not put in again
    elseif known[number] or fresh[id] then
        count('duplicates')
        -- Its worker may ack it without a run: see `drop`.
        call('HSET', key.again, id, 1)
    else
        put_in_line(at, id)
    end
end
set_fields(key.meta, packed)
for _, line in pairs(lines) do
    make_line_ready(line)
end
local new = count_new()
settle()
return new
