-- Return up to %(most)s runs that may leave, by id. {source}: a table, or ONLY a table; from %(low)s
-- to %(high)s. owner: of this owner only; null: of all. Other parameters: see history_leaves.sql.
SELECT r.id FROM {source} r LEFT JOIN jobs_owner o ON o.id = r.owner_id
WHERE r.id >= %(low)s AND r.id < %(high)s
    AND (%(owner)s::bigint IS NULL OR r.owner_id = %(owner)s)
    AND {system/history_leaves}
ORDER BY r.id LIMIT %(most)s
