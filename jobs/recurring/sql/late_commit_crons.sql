-- The distinct cron expressions of the jobs that this round sees and the one before did not.
-- Parameters: seen, before pg_snapshot.
-- Result: cron, zone.
SELECT DISTINCT j.cron, j.zone FROM jobs_job AS j
WHERE j.changed_xid >= pg_snapshot_xmin(%(before)s::pg_snapshot)
    AND NOT pg_visible_in_snapshot(j.changed_xid, %(before)s::pg_snapshot)
    AND pg_visible_in_snapshot(j.changed_xid, %(seen)s::pg_snapshot)
    AND j.schedule || '' = 'cron' AND j.enabled
