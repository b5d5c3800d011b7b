-- hints: add hints of one task and priority; each is stored as its values.
-- KEYS[1]  the queue
-- ARGV     now, priority (0-9, higher first), task; then for each hint run, token, owner, submission
--          ('' for none), job ('' for none), attempt, delay (us), the lock's name within the owner
--          ('' for none), deadline (us from now, '' for none)
-- Result   how many were new; one whose id is known is not added again
-- Keeps    what `enqueue` keeps
-- Cost     O(log n) for each hint
-- One command for each key would be most of the work: ready hints are added line by line.
meet_epoch(0, 0)
local priority, task = tonumber(ARGV[2]), ARGV[3]
local WIDTH = 9

-- The stored values: see HINT_VALUES in envelope.py.
local function text_of(at)
    return cjson.encode({
        ARGV[at], ARGV[at + 1], task, queue, ARGV[at + 2], ARGV[at + 3], ARGV[at + 4], ARGV[at + 5],
        ARGV[2], ARGV[at + 7],
    })
end

-- By owner and submission: the line's messages, each after its order.
local lines, packed, fresh = {}, {}, {}

local function put_in_line(at, id)
    local owner, submission, deadline = ARGV[at + 2], ARGV[at + 3], ARGV[at + 8]
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
    local owner, lock = ARGV[at + 2], ARGV[at + 7]
    group[1], group[2], group[3], group[5] = id, owner, ARGV[at + 3], ARGV[at + 6]
    group[6], group[7] = ARGV[at + 8], lock == '' and '' or owner .. ':' .. lock
    group[9] = text_of(at)
    put_in(group, 1)
end

local ids = {}
for at = 4, #ARGV, WIDTH do
    ids[#ids + 1] = ARGV[at] .. ':' .. ARGV[at + 1]
end
local known = fields_of(key.meta, ids)
for number, id in ipairs(ids) do
    local at = 4 + (number - 1) * WIDTH
    if ARGV[at + 6] ~= '0' or ARGV[at + 7] ~= '' then
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
