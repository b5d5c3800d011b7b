-- Count a request in all its buckets, or in none if one of them is full.
-- KEYS: for each bucket its key: the time until which its requests fill it, in seconds.
-- ARGV: for each bucket its rate in requests a second, and its burst.
-- Result: microseconds to wait (0: let through), and the number of the full bucket, from 0.
-- Keeps true: over any span a bucket lets through burst + rate * span requests at most.
-- Cost: one GET and one SET for each bucket. A key expires when its bucket is empty again.
local time = redis.call('TIME')
local now = tonumber(time[1]) + tonumber(time[2]) / 1000000
local taken = {}
for index, key in ipairs(KEYS) do
    local rate, burst = tonumber(ARGV[2 * index - 1]), tonumber(ARGV[2 * index])
    local start = tonumber(redis.call('GET', key) or now) or now
    -- A clock that was set back must not keep callers out for longer than the bucket lasts.
    start = math.min(math.max(start, now), now + (burst + 1) / rate)
    local wait = start - now - (burst - 1) / rate
    if wait > 0.000001 then
        return {math.ceil(wait * 1000000), index - 1}
    end
    taken[index] = {start + 1 / rate, math.ceil(start + 1 / rate - now)}
end
for index, key in ipairs(KEYS) do
    redis.call('SET', key, string.format('%.6f', taken[index][1]), 'EX', taken[index][2])
end
return {0, -1}
