-- Write the progress of an attempt.
-- Parameters: id uuid, token int, done and total numeric (total may be null), note text.
-- Result: the state of its run; no row if the attempt is not the newest one, or has ended.
-- Keeps true: only the newest token of an active run writes.
UPDATE jobs_run SET progress = jsonb_build_object(
    'token', token, 'done', %(done)s::numeric, 'total', %(total)s::numeric, 'note', %(note)s::text,
    'at', extract(epoch FROM clock_timestamp()))
-- guard: an attempt that is out of date writes no progress
WHERE id = %(id)s AND token = %(token)s AND state || '' IN ('admitted', 'running', 'cancelling')
RETURNING state
