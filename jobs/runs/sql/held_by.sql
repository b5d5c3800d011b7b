-- The shared calendars that still hold overridden runs.
-- Parameters: ids uuid[].
-- Result: a row for each: name, in order.
WITH held AS (
    SELECT DISTINCT owner_id, job_id, target_id, jobs_needed(policy) AS needed FROM jobs_run
    WHERE id = ANY(%(ids)s) AND state = 'held' AND window_policy = 'shared'
)
SELECT DISTINCT c.name
FROM held AS h
CROSS JOIN LATERAL unnest(jobs_calendars(h.owner_id, h.job_id, h.target_id, 'shared')) AS one (id)
JOIN jobs_calendar AS c ON c.id = one.id
CROSS JOIN LATERAL jobs_gate(ARRAY[c.id], clock_timestamp()) AS gate
WHERE coalesce(gate.until - h.needed, '-infinity') < clock_timestamp()
ORDER BY c.name
