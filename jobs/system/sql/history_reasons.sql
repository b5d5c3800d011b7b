-- Count the runs of a partition by what becomes of them. {source}: the partition. Parameters: see
-- history_leaves.sql.
SELECT reason, count(*) AS count FROM (
    SELECT CASE
        WHEN {system/history_leaves} THEN CASE WHEN r.state = 'failed' THEN 'leaves, failed'
            ELSE 'leaves' END
        WHEN r.state NOT IN ('succeeded', 'failed', 'cancelled', 'expired') THEN 'open'
        WHEN r.submission_id = ANY(%(open_submissions)s::bigint[]) THEN 'submission open'
        WHEN r.ended_at >= %(midnight)s - 24 * make_interval(hours => greatest(
            %(key_days)s, %(run_days)s)) THEN 'ended later'
        WHEN r.state = 'failed' AND r.ended_at >= %(midnight)s - 24 * make_interval(
            hours => greatest(%(key_days)s, %(run_days)s, %(failed_run_days)s)) THEN 'failed'
        ELSE 'days of the owner'
    END AS reason
    FROM {source} r LEFT JOIN jobs_owner o ON o.id = r.owner_id
) AS judged
GROUP BY reason ORDER BY reason
