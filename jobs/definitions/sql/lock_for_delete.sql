-- Lock the jobs that are to be deleted.
-- Parameters: owners bigint[], keys text[] (pairs of the same length).
-- Result: a row per job: id.
-- Keeps true: jobs are locked in the order of their ids. Run delete.sql after it: only a later
--   statement sees the records that transactions which held the locks have added.
SELECT j.id
FROM jobs_job j JOIN unnest(%(owners)s::bigint[], %(keys)s::text[]) AS d(owner_id, key)
    ON j.owner_id = d.owner_id AND j.key = d.key
ORDER BY j.id
FOR UPDATE OF j
