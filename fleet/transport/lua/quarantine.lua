-- quarantine: put aside bytes that are no message, for an operator.
-- KEYS[1]  the queue
-- ARGV     now, reason, where: 'list', list, bytes; or 'lease', worker, id, lease, bytes
-- Result   1, or 0 if they were gone
-- Keeps    the newest 1,000; each is counted once; a placeholder stays
-- Cost     O(1) for bytes at the left end of their list
call('LLEN', key.quarantine) -- if its type is wrong, fail before anything is removed
local reason, where, bytes = ARGV[2], ARGV[3], ARGV[#ARGV]
if where == 'list' then
    local is_ours = bytes == '' and ARGV[4] == queue and call('LLEN', queue) <= state.placeholders
    if is_ours or call('LREM', ARGV[4], 1, bytes) == 0 then
        return 0
    end
else
    local packed = call('HGET', key.held .. ARGV[4], ARGV[5])
    local lease = packed and read_lease(ARGV[4], ARGV[5], packed)
    if not lease or lease.number ~= tonumber(ARGV[6]) then
        return 0
    end
    call('HDEL', key.again, lease.id)
    drop({lease})
end
call('LPUSH', key.quarantine, cmsgpack.pack({at = now, reason = reason, bytes = bytes}))
call('LTRIM', key.quarantine, 0, 999)
count('quarantined')
settle()
return 1
