-- Lock waiting runs and return what their gates depend on.
-- Parameters: ids uuid[].
-- Result: of each run that waits, in id order: id, state, calendars (ids, in order), needed (interval),
-- window_policy, now (clock_timestamp(), after the locks).
WITH locked AS MATERIALIZED (
    SELECT id, owner_id, job_id, target_id, state, policy, window_policy FROM jobs_run
    WHERE id = ANY(%(ids)s) AND state IN ('scheduled', 'held', 'queued', 'retrying')
      -- guard: a calendar does not release a wave
      AND blocked_by <> 'wave'
    ORDER BY id
    FOR UPDATE
)
SELECT id, state, jobs_calendars(owner_id, job_id, target_id, window_policy) AS calendars,
    jobs_needed(policy) AS needed, window_policy, clock_timestamp() AS now
FROM locked ORDER BY id
