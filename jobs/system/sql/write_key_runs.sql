-- Write the encrypted columns of runs that have not changed since they were read.
-- Parameters: side by side: ids uuid[], versions text[], payloads, results, errors,
--   checkpoints, looks bytea[], messages text[]; key smallint.
-- Result: id of each run that was written.
-- Keeps true: one statement, which commits by itself. Locked rows are left: nothing waits.
WITH given AS (
    SELECT * FROM unnest(
        %(ids)s::uuid[], %(versions)s::text[], %(payloads)s::bytea[], %(results)s::bytea[],
        %(errors)s::bytea[], %(checkpoints)s::bytea[], %(looks)s::bytea[], %(messages)s::text[]
    ) AS g (id, version, payload, result, error, checkpoint, looks, message)
), locked AS MATERIALIZED (
    SELECT r.id FROM jobs_run AS r JOIN given AS g ON g.id = r.id
    -- guard: a run that has changed since is read again
    WHERE r.id = ANY(%(ids)s::uuid[]) AND concat(r.xmin, r.ctid) = g.version
    ORDER BY r.id
    FOR UPDATE OF r SKIP LOCKED
)
UPDATE jobs_run AS r SET
    payload = g.payload, payload_key = %(key)s,
    result = g.result, result_key = CASE WHEN g.result IS NULL THEN 0 ELSE %(key)s END,
    checkpoint = g.checkpoint,
    checkpoint_key = CASE WHEN g.checkpoint IS NULL THEN 0 ELSE %(key)s END,
    looks = g.looks, looks_key = CASE WHEN g.looks IS NULL THEN 0 ELSE %(key)s END,
    error_message = g.message, error_data = g.error,
    error_key = CASE WHEN g.error IS NULL THEN 0 ELSE %(key)s END
FROM locked AS l JOIN given AS g ON g.id = l.id
WHERE r.id = l.id AND r.id = ANY(%(ids)s::uuid[])
RETURNING r.id
