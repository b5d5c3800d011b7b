-- find: return a message's position.
-- KEYS[1]  the queue
-- ARGV     now, id
-- Result   {state, owner, submission, place in its submission (0 is first), ready messages of its
--          owner, running of its owner, cap, paused, resting until (us or ''), owners before its
--          own, due (us or '')}; state: ready, parked, delayed, leased; unknown has no more
-- Keeps    changes nothing; tells of other owners only how many are before
-- Cost     O(log n)
local id = ARGV[2]
local message = message_of(id)
if not message then
    return {'unknown'}
end
local owner = owner_of(message.owner)
local before = call('ZRANK', ready_key(message.owner, message.submission), id)
return {
    place_of(message),
    message.owner,
    message.submission,
    before or '',
    exact(owner.ready),
    exact(owner.running),
    exact(owner.cap),
    exact(owner.paused),
    call('ZSCORE', key.resting, message.owner) or '',
    call('ZRANK', key.eligible, message.owner) or '',
    call('ZSCORE', key.delayed, id) or '',
}
