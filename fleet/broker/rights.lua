-- Try each command that the scripts of a fair queue use, on a key that does not exist.
-- KEYS: a key of the queue that nothing else uses.
-- Result: the commands that the user may not send, or not on this key.
-- Keeps true: the key does not exist afterwards. PUBLISH is not tried: the workers would hear it.
-- Cost: O(1).
local probe, refused = KEYS[1], {}

local function try(name, ...)
    local answer = redis.pcall(name, ...)
    local problem = type(answer) == 'table' and answer.err or ''
    -- Redis 7 says NOPERM, Redis 6.2 says it in words. Another error comes after the check of rights.
    if problem:find('NOPERM') or problem:find('ACL failure') or problem:find("can't ") then
        refused[#refused + 1] = name
    end
end

try('SCAN', '0', 'COUNT', '1')
try('TIME')
try('HSET', probe, 'a', '1')
try('HDEL', probe, 'b')
try('HEXISTS', probe, 'a')
try('HGET', probe, 'a')
try('HGETALL', probe)
try('HINCRBY', probe, 'a', '1')
try('HLEN', probe)
try('HMGET', probe, 'a')
try('HSCAN', probe, '0')
try('HSETNX', probe, 'a', '1')
try('HVALS', probe)
try('DEL', probe)
try('RPUSH', probe, 'a')
try('LINDEX', probe, '0')
try('LLEN', probe)
try('LPOS', probe, 'a')
try('LPUSH', probe, 'a')
try('LREM', probe, '0', 'b')
try('LTRIM', probe, '0', '-1')
try('DEL', probe)
try('ZADD', probe, '1', 'a')
try('ZCARD', probe)
try('ZCOUNT', probe, '0', '1')
try('ZINCRBY', probe, '1', 'a')
try('ZRANGE', probe, '0', '-1')
try('ZRANGEBYSCORE', probe, '0', '1')
try('ZRANK', probe, 'a')
try('ZREM', probe, 'b')
try('ZREMRANGEBYSCORE', probe, '5', '6')
try('ZSCORE', probe, 'a')
try('EXISTS', probe)
try('EXPIRE', probe, '10')
try('PEXPIRE', probe, '10000')
try('PTTL', probe)
try('TYPE', probe)
try('RENAME', probe, probe)
try('DEL', probe)
try('SET', probe, '1', 'PX', '1000')
try('DEL', probe)
return refused
