-- Return the chunks of a run's log before one that begins with a line of an attempt, the last one first.
-- Parameters: run uuid; token int and line int; only int: the token of one attempt, or null; most int.
-- Result: token, first_line, line_count, first_at, key, data.
SELECT token, first_line, line_count, first_at, key, data FROM jobs_log
WHERE run_id = %(run)s AND (%(only)s::int IS NULL OR token = %(only)s)
    AND (token, first_line) < (%(token)s, %(line)s)
ORDER BY token DESC, first_line DESC LIMIT %(most)s
