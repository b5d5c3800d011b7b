-- Delete these runs, if they may still leave, with their attempts and logs; return their ids.
-- ids: at most a thousand, from %(low)s to %(high)s; the others: see history_leaves.sql.
WITH gone AS (
    DELETE FROM jobs_run WHERE id >= %(low)s AND id <= %(high)s AND id IN (
        SELECT r.id FROM jobs_run r LEFT JOIN jobs_owner o ON o.id = r.owner_id
        WHERE r.id = ANY(%(ids)s) AND r.id >= %(low)s AND r.id <= %(high)s
            AND {system/history_leaves}
        FOR UPDATE OF r SKIP LOCKED)
    RETURNING id
), attempts AS (
    DELETE FROM jobs_attempt a USING gone
    WHERE a.run_id = gone.id AND a.run_id >= %(low)s AND a.run_id <= %(high)s
), logs AS (
    DELETE FROM jobs_log l USING gone
    WHERE l.run_id = gone.id AND l.run_id >= %(low)s AND l.run_id <= %(high)s
)
SELECT id FROM gone
