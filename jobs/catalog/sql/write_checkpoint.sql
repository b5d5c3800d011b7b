-- Write the checkpoint of a run.
-- Parameters: id uuid, token int, data bytea, key smallint.
-- Result: the state of its run; no row if the attempt is not the newest one, or has ended.
-- Keeps true: only the newest token of an active run writes.
UPDATE jobs_run SET checkpoint = %(data)s, checkpoint_key = %(key)s
-- guard: an attempt that is out of date writes no checkpoint
WHERE id = %(id)s AND token = %(token)s AND state || '' IN ('admitted', 'running', 'cancelling')
RETURNING state
