-- Record due times that were not run because they were outside their job's windows.
-- Parameters, side by side: job_ids bigint[], due_ats timestamptz[].
-- Result: none.
-- Keeps true: one record a job from one opening of its calendars to the next, with the number of due
-- times; repeated ones and those within a record change nothing; none of a deleted job.
WITH given AS (
    SELECT j.id, j.owner_id, jobs_calendars(j.owner_id, j.id, j.target_id) AS calendars,
        min(note.due_at) AS first_at, max(note.due_at) AS last_at, count(*) AS count
    FROM (SELECT DISTINCT * FROM unnest(%(job_ids)s::bigint[], %(due_ats)s::timestamptz[])
        AS n (job_id, due_at)) AS note
    JOIN jobs_job AS j ON j.id = note.job_id
    WHERE NOT EXISTS (
        SELECT FROM jobs_missed AS m
        WHERE m.job_id = j.id AND m.reason = 'window' AND note.due_at BETWEEN m.first_at AND m.last_at)
    GROUP BY j.id
), extended AS (
    UPDATE jobs_missed AS m SET last_at = given.last_at, count = m.count + given.count
    FROM given
    WHERE m.id = (
            SELECT newest.id FROM jobs_missed AS newest
            WHERE newest.job_id = given.id AND newest.reason = 'window'
            ORDER BY newest.id DESC LIMIT 1)
      AND m.last_at < given.first_at
      AND NOT EXISTS (
        SELECT FROM jobs_opening AS o
        WHERE o.calendar_id = ANY(given.calendars)
          AND o.opens_at > m.last_at AND o.opens_at <= given.first_at)
    RETURNING m.job_id
)
INSERT INTO jobs_missed (job_id, owner_id, first_at, last_at, count, reason)
SELECT id, owner_id, first_at, last_at, count, 'window' FROM given
WHERE id NOT IN (SELECT job_id FROM extended)
ON CONFLICT DO NOTHING
