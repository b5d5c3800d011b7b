-- Begin a tick, or continue it.
-- Parameters: id bigint.
-- Result: kind, first_slot, end_slot, after_job; none when it is done, or locked by another worker.
-- Keeps true: `seen` is from before the tick's jobs were read: jobs that it does not show are found
--   by jobs/recurring/late_commits.py. The first snapshot stays, since a worker that continues the
--   tick does not read again the jobs that were done before.
UPDATE jobs_tick SET seen = coalesce(seen, pg_current_snapshot()), sent_at = clock_timestamp()
WHERE id = (
    SELECT id FROM jobs_tick WHERE id = %(id)s AND done_at IS NULL FOR UPDATE SKIP LOCKED
)
RETURNING kind, first_slot, end_slot, after_job
