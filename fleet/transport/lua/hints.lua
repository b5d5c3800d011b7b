-- hints: put messages in that are alike but for their run, token, owner and submission.
-- KEYS[1]  the queue
-- ARGV     now; priority (0-9, higher first), delay (us), deadline (us from now, '' for none), lock
--          ('' for none), task; how many texts follow, in turn the message's own and the name of
--          the value between them ('run', 'token', 'owner', 'submission'); then for each message
--          run, token, owner, submission ('' for none)
-- Result   how many were new; one whose id is known is not put in again
-- Keeps    what `enqueue` keeps
-- Cost     O(log n) for each message
-- The texts of a thousand messages would be most of what is sent, and of what is read here.
meet_epoch(0, 0)
local first = 8 + tonumber(ARGV[7])
local pieces, holes = {}, {}
for at = 8, first - 1 do
    pieces[#pieces + 1] = ARGV[at]
    if #pieces % 2 == 0 then
        holes[#pieces] = ARGV[at]
    end
end
local group = {[4] = ARGV[2], [5] = ARGV[3], [6] = ARGV[4], [7] = ARGV[5], [8] = ARGV[6]}
for at = first, #ARGV, 4 do
    local value = {run = ARGV[at], token = ARGV[at + 1]}
    value.owner = '"' .. ARGV[at + 2] .. '"'
    value.submission = ARGV[at + 3] == '' and 'null' or ARGV[at + 3]
    for place, name in pairs(holes) do
        pieces[place] = value[name]
    end
    group[1], group[2], group[3] = value.run .. ':' .. value.token, ARGV[at + 2], ARGV[at + 3]
    group[9] = table.concat(pieces)
    put_in(group, 1)
end
local new = store_new()
settle()
return new
