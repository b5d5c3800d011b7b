-- Take, in one order, the advisory locks of every owner with a cap and of every lock key
-- among the asked runs: two workers that count the same runs must do so one after the other.
-- A statement of its own, because the counting one needs a snapshot younger than the locks.
-- Parameters: ids uuid[].
SELECT pg_advisory_xact_lock(limited.space, limited.key)
FROM (
    SELECT DISTINCT wanted.space, hashtext(wanted.name) AS key
    FROM jobs_run r
    JOIN jobs_owner o ON o.id = r.owner_id
    CROSS JOIN LATERAL (VALUES
        (1718, CASE WHEN o.max_running IS NOT NULL THEN o.slug END),
        (1719, NULLIF(r.lock_key, ''))
    ) AS wanted(space, name)
    WHERE r.id = ANY(%(ids)s) AND r.state = 'queued' AND wanted.name IS NOT NULL
    ORDER BY 1, 2
) AS limited
