-- strike: count that a process has died with this message.
-- KEYS[1]  the queue
-- ARGV     now, id
-- Result   how often by now
-- Keeps    the count as long as the message is known
-- Cost     O(1)
if call('HEXISTS', key.meta, ARGV[2]) == 0 then
    return 0
end
return call('HINCRBY', key.strikes, ARGV[2], 1)
