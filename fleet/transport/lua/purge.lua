-- purge: remove waiting messages; leased ones stay.
-- KEYS[1]  the queue
-- ARGV     now, limit
-- Result   how many were removed; call again until there are fewer than the limit
-- Keeps    what `withdraw` keeps
-- Cost     O(limit), and a scan past what is leased and what earlier calls have removed
local removed, limit = 0, tonumber(ARGV[2])
local cursor = '0'
repeat
    local reply = call('HSCAN', key.meta, cursor, 'COUNT', 100)
    cursor = reply[1]
    local ids = {}
    for at = 1, #reply[2], 2 do
        ids[#ids + 1] = reply[2][at]
    end
    removed = removed + withdraw(ids)
until cursor == '0' or removed >= limit
settle()
return removed
