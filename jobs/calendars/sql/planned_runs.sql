-- How many held runs, of what a calendar applies to, wait for each of its openings.
-- Parameters: calendar bigint, start timestamptz, "end" timestamptz; owners bigint[],
--   whose runs are counted, null: all.
-- Result: opens_at, closes_at, runs (count), for openings that overlap the span and have runs; in
--   order.
-- Keeps true: only the number of runs is given, nothing else of them.
WITH applying AS MATERIALIZED (
    SELECT owner_id, job_id, target_id FROM jobs_attachment WHERE calendar_id = %(calendar)s
    UNION
    SELECT NULL, NULL, g.target_id
    FROM jobs_attachment AS a
    JOIN jobs_targetgroup_targets AS g ON g.targetgroup_id = a.group_id
    WHERE a.calendar_id = %(calendar)s
)
SELECT o.opens_at, o.closes_at, count(*) AS runs
FROM jobs_opening AS o
JOIN jobs_run AS r
    ON r.state = 'held' AND r.next_at >= o.opens_at AND r.next_at < o.closes_at
WHERE o.calendar_id = %(calendar)s AND o.closes_at > %(start)s AND o.opens_at < %(end)s
    AND (%(owners)s::bigint[] IS NULL OR r.owner_id = ANY(%(owners)s))
    AND (
        r.owner_id IN (SELECT owner_id FROM applying)
        OR r.job_id IN (SELECT job_id FROM applying)
        OR r.target_id IN (SELECT target_id FROM applying)
    )
GROUP BY o.opens_at, o.closes_at
ORDER BY o.opens_at
