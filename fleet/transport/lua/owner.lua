-- owner: set the settings of owners; they act on their backlog at once.
-- KEYS[1]  the queue
-- ARGV     now, then for each: owner, weight, cap (0 for none), paused (0 or 1), rate (starts a
--          second, 0 for none), burst
-- Result   how many owners
-- Keeps    what an owner has received stays charged; a new weight counts from now on. An unknown
--          owner with the defaults gets no account: its first message makes the same one
-- Cost     O(log n) for each
for at = 2, #ARGV, 6 do
    local values = {}
    for index = 1, 5 do
        values[index] = tonumber(ARGV[at + index])
    end
    if not has_defaults(unpack(values, 1, 4)) or call('HEXISTS', key.accounts, ARGV[at]) == 1 then
        local owner = owner_of(ARGV[at])
        owner.may_rest = owner.rate > 0
        change(owner, unpack(values))
        touch(owner)
    end
end
settle()
return (#ARGV - 1) / 6
