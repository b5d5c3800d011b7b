-- A part of the statements that end runs: record each end once for each listener of its owner.
-- Needs: the CTE `moved` with id, owner_id, submission_id, state, ended_at of the rows as they are now.
-- Keeps true: an end is recorded in the statement that makes it.
-- Cost: without a listener, one look at an empty table for the whole statement.
INSERT INTO jobs_end (listener, run_id, owner_id, submission_id, state, ended_at, recorded_at)
SELECT l.name, m.id, m.owner_id, m.submission_id, m.state, m.ended_at, clock_timestamp()
FROM moved m
JOIN jobs_endlistener l ON l.owner_id IN (0, m.owner_id)
WHERE (SELECT EXISTS (SELECT FROM jobs_endlistener))
  AND m.state IN ('succeeded', 'failed', 'cancelled', 'expired')
