-- The runs in a queue that have not ended, by owner, submission and the time when they need workers.
-- Parameters: queue text, without bigint (a submission that is left out, or null), most int.
-- Result: owner_id, submission_id (null for single runs), since (null: now), count.
-- Runs of waves that are not released are left out: `capacity.py` reads those of rollouts.
-- Keeps true: at most `most` rows are read, by the index of runs that have not succeeded.
SELECT owner_id, submission_id, min(next_at) AS since, count(*) AS count
FROM (
    SELECT owner_id, submission_id,
        CASE WHEN state IN ('held', 'scheduled', 'retrying') THEN next_at END AS next_at
    FROM jobs_run
    WHERE state IN ('queued', 'admitted', 'running', 'cancelling', 'held', 'scheduled', 'retrying')
        AND NOT (state = 'held' AND blocked_by = 'wave')
        AND queue = %(queue)s AND submission_id IS DISTINCT FROM %(without)s::bigint
    LIMIT %(most)s
) AS waiting
GROUP BY owner_id, submission_id, date_trunc('minute', next_at)
