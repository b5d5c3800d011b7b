-- Write jobs that are there already, where they differ from what is given.
-- Parameters: rows json: an array of objects by the names of columns, each job at most once;
--   payload as bytea in hex; id: the job that the payload is encrypted for (null: it is not); phase and shard: the place to take where the job has none yet.
-- Result: id, owner_id and key of each job that was changed.
-- Keeps true: jobs are locked in the order of their ids, so two bulks do not deadlock. A job that is
--   equal is neither locked nor written. The place stays as long as the interval (or a smooth
--   schedule's kind) does. A pause belongs to operators and is not changed.
WITH given AS MATERIALIZED (
    SELECT * FROM json_populate_recordset(NULL::jobs_job, %(rows)s::json)
), changed AS MATERIALIZED (
    SELECT j.id AS job_id, j.interval_minutes AS old_minutes, j.phase AS old_phase,
        j.shard AS old_shard, n.*
    FROM given n JOIN jobs_job j ON j.owner_id = n.owner_id AND j.key = n.key
    WHERE ({definitions/differs}
        OR n.phase IS NOT NULL AND (j.phase IS NULL OR j.shard IS NULL))
        -- A job's arguments are encrypted for its id.
        AND (n.id IS NULL OR j.id = n.id)
    ORDER BY j.id
    FOR NO KEY UPDATE OF j
), placed AS (
    SELECT c.*, c.phase IS NOT NULL AND c.old_phase IS NOT NULL AND c.old_shard IS NOT NULL
        AND c.interval_minutes IS NOT DISTINCT FROM c.old_minutes AS keeps
    FROM changed c
)
UPDATE jobs_job j SET
    {definitions/assignments},
    phase = CASE WHEN n.keeps THEN n.old_phase ELSE n.phase END,
    shard = CASE WHEN n.keeps THEN n.old_shard ELSE n.shard END
FROM placed n
WHERE j.id = n.job_id
RETURNING j.id, j.owner_id, j.key
