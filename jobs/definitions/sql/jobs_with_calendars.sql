-- Jobs whose runs obey a calendar: of the job, its owner, its target, or a group of targets.
-- Parameters: none.
-- Result: id of each.
-- Keeps true: an owner without attached calendars costs one comparison for each of its jobs.
SELECT j.id FROM jobs_job AS j JOIN jobs_owner AS o ON o.id = j.owner_id
WHERE o.calendar_version > 0 AND jobs_calendars(j.owner_id, j.id, j.target_id) <> '{}'
