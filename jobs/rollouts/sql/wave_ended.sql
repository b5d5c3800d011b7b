-- Count the runs of a wave that have ended.
-- Parameters: submission bigint; first and last uuid; most int: count no further.
-- Result: one row: count.
SELECT count(*) AS count FROM (
    SELECT FROM {runs}
    WHERE submission_id = %(submission)s AND id BETWEEN %(first)s AND %(last)s
      AND state IN ('succeeded', 'failed', 'cancelled', 'expired')
    LIMIT %(most)s
) AS ended
