-- Runs that are held by a worker which has stopped or whose heartbeat is older than the lease.
-- Parameters: lease seconds, most int.
-- Result: what a decision on the next attempt needs. Rows are locked; those that others hold
-- are left for the next call.
SELECT r.id, r.token, r.attempt_count, r.max_attempts, r.policy, w.hostname
FROM jobs_run r JOIN jobs_worker w ON w.id = r.worker_id
WHERE r.state IN ('admitted', 'running', 'cancelling')
  AND (w.stopped_at IS NOT NULL
       OR w.heartbeat_at < clock_timestamp() - make_interval(secs => %(lease)s))
ORDER BY r.id
LIMIT %(most)s
FOR UPDATE OF r SKIP LOCKED
