-- Set when an owner's active runs are to be stopped, by its current calendars.
-- Parameters: owner bigint.
-- Result: id and stop_at of each run that was changed.
-- Keeps true: a run is stopped only by a calendar that ends active runs, and only before the close that
-- its admission knew, which is a time limit. Overridden and stopping runs are skipped. Rows are locked
-- in id order.
WITH active AS MATERIALIZED (
    SELECT id, job_id, target_id, closes_at, window_policy FROM jobs_run
    WHERE owner_id = %(owner)s AND state IN ('admitted', 'running')
    ORDER BY id
    FOR UPDATE
), now AS MATERIALIZED (
    SELECT clock_timestamp() AS at FROM (SELECT count(*) FROM active) AS after_the_locks
), judged AS (
    -- guard: the stop time of an attempt only moves earlier
    SELECT a.id, CASE WHEN ends.at < coalesce(a.closes_at, 'infinity') THEN ends.at END AS stop_at
    FROM active a
    CROSS JOIN now
    LEFT JOIN LATERAL (
        -- A stale calendar has no openings yet and would seem closed: it is left out until it has.
        SELECT jobs_ends(ARRAY(
            SELECT c.id FROM jobs_calendar AS c
            WHERE c.id = ANY(jobs_calendars(%(owner)s, a.job_id, a.target_id, a.window_policy)) AND NOT c.is_stale
        ), now.at) AS at
    ) AS ends ON a.window_policy <> 'overridden'
)
UPDATE jobs_run r SET stop_at = j.stop_at
FROM judged j
WHERE r.id = j.id AND r.stop_at IS DISTINCT FROM j.stop_at
RETURNING r.id, r.stop_at
