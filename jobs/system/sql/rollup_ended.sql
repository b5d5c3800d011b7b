-- A part of other statements: what ended in a span, one row an attempt or run.
-- Parameters: minute and end timestamptz (end not included).
-- Result: owner_id, task, queue, outcome, at, error_type; wait and run in seconds, or null.
-- Cost: attempts of the span by attempt_recorded, and the run of each by its id; the few runs that did not
-- succeed by run_ended.
SELECT r.owner_id, r.task, r.queue, a.run_state AS outcome, a.recorded_at AS at,
    CASE WHEN a.run_state IN ('failed', 'retrying') THEN a.error_type ELSE '' END AS error_type,
    -- Raw SQL may have written infinity, which must not keep the minute from being counted.
    CASE WHEN isfinite(a.started_at) AND isfinite(a.queued_at)
        THEN greatest(extract(epoch FROM a.started_at - a.queued_at), 0) END AS wait,
    CASE WHEN isfinite(a.ended_at) AND isfinite(a.started_at)
        THEN greatest(extract(epoch FROM a.ended_at - a.started_at), 0) END AS run
FROM jobs_attempt AS a
-- OFFSET 0 keeps the planner from starting with the runs when it takes their table for small.
CROSS JOIN LATERAL (SELECT owner_id, task, queue FROM jobs_run WHERE id = a.run_id OFFSET 0) AS r
WHERE a.recorded_at >= %(minute)s AND a.recorded_at < %(end)s
    -- guard: an attempt that was given back has no outcome
    AND a.run_state NOT IN ('', 'queued')
UNION ALL
SELECT r.owner_id, r.task, r.queue, r.state, r.ended_at, '', NULL, NULL
FROM jobs_run AS r
WHERE r.state IN ('failed', 'cancelled', 'expired')
    AND r.ended_at >= %(minute)s AND r.ended_at < %(end)s
    -- guard: an end that an attempt made is counted with that attempt
    AND NOT EXISTS (SELECT FROM jobs_attempt AS a
        WHERE a.run_id = r.id AND a.token = r.token AND a.ended_at = r.ended_at)
