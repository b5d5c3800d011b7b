-- counters: return the numbers of the queue.
-- KEYS[1]  the queue
-- ARGV     now
-- Result   {name, number, …}: counters of events, and gauges of the present state
-- Keeps    changes nothing
-- Cost     O(workers)
local numbers = call('HGETALL', key.counters)
local function add(name, number)
    numbers[#numbers + 1] = name
    numbers[#numbers + 1] = number
end
local leased = 0
for _, worker in ipairs(call('ZRANGE', key.workers, 0, -1)) do
    leased = leased + call('HLEN', key.held .. worker)
end
add('ready', call('LLEN', queue))
add('delayed', call('ZCARD', key.delayed))
add('leased', leased)
add('messages', call('HLEN', key.meta))
add('owners', call('ZCARD', key.owners))
add('eligible', call('ZCARD', key.eligible))
add('workers', call('ZCARD', key.workers))
add('sleeping', call('ZCARD', key.sleepers))
add('in_quarantine', call('LLEN', key.quarantine))
return numbers
