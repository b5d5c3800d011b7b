-- Delete jobs, with what was noted of their missed times and their backfills.
-- Parameters: owners bigint[], keys text[] (pairs of the same length).
-- Result: a row per job that was deleted: id, schedule.
-- Keeps true: jobs are locked in the order of their ids; their runs keep their history and the
-- number of the job.
WITH doomed AS MATERIALIZED (
    SELECT j.id, j.schedule
    FROM jobs_job j JOIN unnest(%(owners)s::bigint[], %(keys)s::text[]) AS d(owner_id, key)
        ON j.owner_id = d.owner_id AND j.key = d.key
    ORDER BY j.id
    FOR UPDATE OF j
), missed AS (
    DELETE FROM jobs_missed WHERE job_id IN (SELECT id FROM doomed)
), backfills AS (
    DELETE FROM jobs_backfill WHERE job_id IN (SELECT id FROM doomed)
), jobs AS (
    DELETE FROM jobs_job WHERE id IN (SELECT id FROM doomed)
)
SELECT id, schedule FROM doomed
