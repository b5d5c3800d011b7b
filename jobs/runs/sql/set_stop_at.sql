-- Say of an owner's active runs when they are to be stopped, as its calendars are now.
-- Parameters: owner bigint.
-- Result: id and stop_at of each run for which that has changed.
-- Keeps true: a run is stopped only by a calendar that ends what runs, and only earlier than its
-- attempt was told at its admission: an end that was told is a time limit. What was overridden, and
-- what is stopping already, is left. Rows are locked in id order.
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
        -- A stale calendar has no openings yet and would seem closed; its owner is judged again soon.
        SELECT jobs_ends(ARRAY(
            SELECT c.id FROM jobs_calendar AS c
            WHERE c.id = ANY(jobs_calendars(%(owner)s, a.job_id, a.target_id)) AND NOT c.is_stale
        ), now.at) AS at
    ) AS ends ON a.window_policy <> 'overridden'
)
UPDATE jobs_run r SET stop_at = j.stop_at
FROM judged j
WHERE r.id = j.id AND r.stop_at IS DISTINCT FROM j.stop_at
RETURNING r.id, r.stop_at
