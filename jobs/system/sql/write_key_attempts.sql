-- Write the texts of attempts that have not changed since they were read.
-- Parameters: side by side: runs uuid[], tokens int[], versions, messages, tracebacks text[], errors
--   bytea[]; key smallint.
-- Result: run_id of each attempt that was written.
UPDATE jobs_attempt AS a SET
    error_message = g.message, traceback = g.traceback, error_data = g.error,
    error_key = CASE WHEN g.error IS NULL THEN 0 ELSE %(key)s END
FROM unnest(
    %(runs)s::uuid[], %(tokens)s::int[], %(versions)s::text[], %(messages)s::text[],
    %(tracebacks)s::text[], %(errors)s::bytea[]
) AS g (run_id, token, version, message, traceback, error)
WHERE a.run_id = g.run_id AND a.token = g.token AND a.run_id = ANY(%(runs)s::uuid[])
  AND concat(a.xmin, a.ctid) = g.version
RETURNING a.run_id
