-- Return the next chunks of a run's log: those with lines after a line of an attempt.
-- Parameters: run uuid; token int and line int; only int: the token of one attempt, or null; most int.
-- Result: token, first_line, line_count, first_at, key, data.
SELECT token, first_line, line_count, first_at, key, data FROM jobs_log
WHERE run_id = %(run)s AND (%(only)s::int IS NULL OR token = %(only)s)
    AND (token > %(token)s OR token = %(token)s AND first_line + line_count > %(line)s + 1)
ORDER BY token, first_line LIMIT %(most)s
