-- Insert jobs that do not exist yet.
-- Parameters: rows json, as update.sql takes it.
-- Result: id, owner_id and key of each job that was made; another transaction has made the others.
-- Keeps true: jobs are inserted in the order of owner and key, so two bulks do not deadlock.
INSERT INTO jobs_job (
    id, owner_id, key, {definitions/columns}, phase, shard, effective_from, created_at, changed_at)
SELECT
    coalesce(id, nextval(pg_get_serial_sequence('jobs_job', 'id'))), owner_id, key, {definitions/columns}, phase, shard,
    clock_timestamp(), clock_timestamp(), clock_timestamp()
FROM json_populate_recordset(NULL::jobs_job, %(rows)s::json)
ORDER BY owner_id, key COLLATE "C"
ON CONFLICT (owner_id, key) DO NOTHING
RETURNING id, owner_id, key
