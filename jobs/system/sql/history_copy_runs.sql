-- Copy the runs of a partition that stay. {source}: the partition; {aside}: the new table;
-- {columns}: all columns, {values}: the same of `r`. Other parameters: see history_leaves.sql.
INSERT INTO {aside} ({columns})
SELECT {values} FROM {source} r LEFT JOIN jobs_owner o ON o.id = r.owner_id
-- guard: a run that stays is in the new partition
WHERE ({system/history_leaves}) IS NOT TRUE
