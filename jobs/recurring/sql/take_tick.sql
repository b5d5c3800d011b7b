-- Begin with a tick, or go on with it.
-- Parameters: id bigint.
-- Result: kind, first_slot, end_slot, after_job; none when it is done, or somebody is at it now.
-- Keeps true: `seen` is from before anything of the tick was read, so that what it does not show is
--   read again (jobs/recurring/late_commits.py). The first one stays: jobs that were done then are not read
--   by who goes on.
UPDATE jobs_tick SET seen = coalesce(seen, pg_current_snapshot()), sent_at = clock_timestamp()
WHERE id = (
    SELECT id FROM jobs_tick WHERE id = %(id)s AND done_at IS NULL FOR UPDATE SKIP LOCKED
)
RETURNING kind, first_slot, end_slot, after_job
