-- waiting: return a page of the messages that no worker has.
-- KEYS[1]  the queue
-- ARGV     now, cursor ('0' at first), number
-- Result   the next cursor ('0' after the last page), then id, state, order and body of each
-- Keeps    changes nothing. A message that waits from the first page to the last is returned at
--          least once, in no order; HSCAN may return it twice
-- Cost     O(number); a small hash is returned whole
local reply = call('HSCAN', key.meta, ARGV[2], 'COUNT', ARGV[3])
local found, ids = {reply[1]}, {}
for at = 1, #reply[2], 2 do
    local id = reply[2][at]
    local message = read_message(id, reply[2][at + 1])
    local where = place_of(message)
    if where ~= 'leased' then
        ids[#ids + 1] = id
        for _, fact in ipairs({id, where, message.order, ''}) do
            found[#found + 1] = fact
        end
    end
end
for at, body in ipairs(fields_of(key.body, ids)) do
    found[4 * at + 1] = body or ''
end
return found
