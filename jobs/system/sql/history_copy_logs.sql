-- Copy the logs of a partition that stay: those whose run is there. Parameters: as of
-- history_copy_attempts.sql.
INSERT INTO {aside} ({columns})
SELECT {values} FROM {source} r JOIN jobs_run q ON q.id = r.run_id
WHERE q.id >= %(low)s AND q.id < %(high)s
