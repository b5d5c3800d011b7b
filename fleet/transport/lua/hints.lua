-- hints: put messages in that are alike but for some values.
-- KEYS[1]  the queue
-- ARGV     now; priority (0-9, higher first), deadline (us from now, '' for none), task; how many
--          texts follow, in turn the message's own and the name of the value between them ('run',
--          'token', 'owner', 'submission', 'job', 'lock'); then for each message run, token, owner,
--          submission ('' for none), job ('' for none), delay (us), the owner's own word for its
--          lock ('' for none)
-- Result   how many were new; one whose id is known is not put in again
-- Keeps    what `enqueue` keeps
-- Cost     O(log n) for each message
-- The texts of a thousand messages would be most of what is sent, and of what is read here.
meet_epoch(0, 0)
local first = 6 + tonumber(ARGV[5])
local pieces, holes = {}, {}
for at = 6, first - 1 do
    pieces[#pieces + 1] = ARGV[at]
    if #pieces % 2 == 0 then
        holes[#pieces] = ARGV[at]
    end
end
local group = {[4] = ARGV[2], [6] = ARGV[3], [8] = ARGV[4]}
for at = first, #ARGV, 7 do
    local owner, lock = ARGV[at + 2], ARGV[at + 6]
    local value = {run = ARGV[at], token = ARGV[at + 1], job = ARGV[at + 4]}
    value.owner = '"' .. owner .. '"'
    value.submission = ARGV[at + 3] == '' and 'null' or ARGV[at + 3]
    value.lock = lock ~= '' and cjson.encode(lock)
    for place, name in pairs(holes) do
        pieces[place] = value[name]
    end
    group[1], group[2], group[3] = value.run .. ':' .. value.token, owner, ARGV[at + 3]
    group[5], group[7] = ARGV[at + 5], lock == '' and '' or owner .. ':' .. lock
    group[9] = table.concat(pieces)
    put_in(group, 1)
end
local new = store_new()
settle()
return new
