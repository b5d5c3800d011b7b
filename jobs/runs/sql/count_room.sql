-- Count what limits the requested runs, after lock_limits.sql has taken its locks.
-- Parameters: owners bigint[] (those with a cap), locks text[].
-- Result: a row per owner: owner_id, room (how many more may run); a row per lock key of an active run.
-- Not in admit.sql: these counts read all partitions, which takes longer to plan than an admission.
SELECT o.id AS owner_id, NULL AS lock_key,
    o.max_running - (
        SELECT count(*) FROM jobs_run a
        -- guard: what is admitted and not yet started counts under a cap
        WHERE a.owner_id = o.id AND a.state IN ('admitted', 'running', 'cancelling')) AS room
FROM jobs_owner o
WHERE o.id = ANY(%(owners)s) AND o.max_running IS NOT NULL
UNION ALL
SELECT DISTINCT NULL::bigint, a.lock_key, NULL::bigint
FROM jobs_run a
WHERE a.lock_key = ANY(%(locks)s) AND a.lock_key <> ''
  AND a.state IN ('admitted', 'running', 'cancelling')
