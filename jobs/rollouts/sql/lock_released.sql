-- Lock the next held runs of released waves.
-- Parameters: submission bigint, after uuid, last uuid, most int.
-- Result: id, is_due (it has no due time, or that has come), in order.
-- Keeps true: rows are locked in id order, as by admission.
SELECT id, coalesce(due_at <= clock_timestamp(), true) AS is_due FROM {runs}
WHERE submission_id = %(submission)s AND state = 'held' AND blocked_by = 'wave'
  AND id > %(after)s AND id <= %(last)s
ORDER BY id LIMIT %(most)s
FOR UPDATE
