-- hold: lease these messages to a worker again: the queue was emptied.
-- KEYS[1]  the queue
-- ARGV     now, worker, then for each: lease, how long it has run (us, '' if it has finished),
--          expected run time (us, '' if unknown), and the message as for enqueue
-- Result   how many leases were not known
-- Keeps    running messages count for caps, locks and shares; leased messages are in no line
-- Cost     O(log n) for each
local worker, restored = ARGV[2], 0
local held = key.held .. worker
for at = 3, #ARGV, 12 do
    local number, ran_for = tonumber(ARGV[at]), tonumber(ARGV[at + 1])
    local expected = tonumber(ARGV[at + 2])
    local message, body = read_group(ARGV, at + 3)
    if call('HEXISTS', held, message.id) == 0 then
        restored = restored + 1
        local known = message_of(message.id)
        if known then
            message = known
            take_from_lines(known)
        end
        state.lease = math.max(state.lease, number)
        if ran_for then
            -- guard: what runs counts again after a flush
            resume_lease(worker, message, number, expected, now - ran_for)
        else
            call('HSET', held, message.id, cmsgpack.pack(number))
        end
        if not known then
            store_message(message, body) -- after its lease: see `drop`
        end
    end
end
count('restored', restored)
settle()
return restored
