-- Delete jobs, with what was noted of their missed times, their backfills, and the calendars that
-- they had to themselves.
-- Parameters: ids bigint[]: jobs that are locked (lock_for_delete.sql).
-- Result: a row per job that was deleted: id, schedule.
-- Keeps true: nobody notes anything of a job that is locked, so that what is seen here is all of it;
-- their runs keep their history and the number of the job.
WITH missed AS (
    DELETE FROM jobs_missed WHERE job_id = ANY(%(ids)s)
), backfills AS (
    DELETE FROM jobs_backfill WHERE job_id = ANY(%(ids)s)
), attached AS (
    DELETE FROM jobs_attachment WHERE job_id = ANY(%(ids)s)
)
DELETE FROM jobs_job WHERE id = ANY(%(ids)s) RETURNING id, schedule
