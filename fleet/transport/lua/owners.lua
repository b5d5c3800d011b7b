-- owners: return the state of owners: a page of all, or some by name.
-- KEYS[1]  the queue
-- ARGV     now, first, number, then names; first and number are ignored if there are names
-- Result   for each: {name, weight, cap, paused, rate, ready, running, finished, served (us),
--          virtual time (us), '1' if eligible, resting until (us, '' for not), oldest published
--          (us, '' for none)}
-- Keeps    changes nothing
-- Cost     O(owners returned), and at most 20 submissions of each
local first, number = tonumber(ARGV[2]), tonumber(ARGV[3])
local names = {unpack(ARGV, 4)}
if #names == 0 and number > 0 then
    names = call('ZRANGE', key.owners, first, first + number - 1)
end

local function oldest_of(name)
    local oldest
    for _, submission in ipairs(call('ZRANGE', key.submissions .. name, 0, 19)) do
        local id = call('ZRANGE', ready_key(name, submission), 0, 0)[1]
        local message = id and message_of(id)
        if message and (not oldest or message.at < oldest) then
            oldest = message.at
        end
    end
    return oldest
end

local rows = {}
for _, name in ipairs(names) do
    if call('ZSCORE', key.owners, name) then
        local owner, oldest = owner_of(name), oldest_of(name)
        rows[#rows + 1] = {
            name,
            exact(owner.weight),
            exact(owner.cap),
            exact(owner.paused),
            exact(owner.rate),
            exact(owner.ready),
            exact(owner.running),
            exact(owner.finished),
            exact(owner.served),
            exact(effective(owner)),
            score_of(owner) and '1' or '',
            call('ZSCORE', key.resting, name) or '',
            oldest and exact(oldest) or '',
        }
    end
end
return rows
