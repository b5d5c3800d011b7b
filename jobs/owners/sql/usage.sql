-- What an owner's runs of a span used.
--   owner: id; first, last: ids of runs, from `first` to before `last` (ids begin with their time)
-- Result: one row for each state: its runs, and the seconds that workers ran their ended attempts.
-- Cost: the owner's runs of the span, by index, and their attempts.
SELECT r.state, count(*) AS runs, coalesce(sum(a.seconds), 0)::float8 AS worker_seconds
FROM jobs_run AS r
CROSS JOIN LATERAL (
    SELECT sum(extract(epoch FROM t.ended_at - t.started_at)) AS seconds
    FROM jobs_attempt AS t
    WHERE t.run_id = r.id AND t.run_id >= %(first)s AND t.run_id < %(last)s
        AND t.started_at IS NOT NULL
) AS a
WHERE r.owner_id = %(owner)s AND r.id >= %(first)s AND r.id < %(last)s
GROUP BY r.state
