-- Copy the attempts of a partition that stay: those whose run is there, and that are not older than
-- attempts_before, or whose run is open. {source}: the partition, from %(low)s to %(high)s; {aside}:
-- the new table; {columns}: all columns, {values}: the same of `r`.
INSERT INTO {aside} ({columns})
SELECT {values} FROM {source} r JOIN jobs_run q ON q.id = r.run_id
WHERE q.id >= %(low)s AND q.id < %(high)s
    AND (r.ended_at >= %(attempts_before)s OR q.ended_at IS NULL)
