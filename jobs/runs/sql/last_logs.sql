-- Return the last two chunks of the log of each of some runs.
-- Parameters: runs uuid[].
-- Result: run_id, token, first_line, line_count, first_at, key, data; of a run in the order of its lines.
SELECT l.* FROM unnest(%(runs)s::uuid[]) AS r(id)
CROSS JOIN LATERAL (
    SELECT run_id, token, first_line, line_count, first_at, key, data FROM jobs_log
    WHERE run_id = r.id ORDER BY token DESC, first_line DESC LIMIT 2
) AS l
ORDER BY l.run_id, l.token, l.first_line
