-- What has been made due since jobs were read again last.
-- Parameters: none.
-- Result: seen and before (snapshots, as text), slot (the cursor's), any (is there a job to read).
-- Keeps true: jobs are found by who wrote them, which no clock and no long transaction can hide: what
--   one round does not see is not in its snapshot, and so is the next round's. Of a restored
--   database, whose snapshots are of another server, it begins anew.
SELECT c.seen::text, c.before::text, c.slot, EXISTS (
    SELECT FROM jobs_job AS j
    WHERE j.changed_xid >= pg_snapshot_xmin(c.before)
        AND NOT pg_visible_in_snapshot(j.changed_xid, c.before)
        AND pg_visible_in_snapshot(j.changed_xid, c.seen)
) AS any
FROM (
    SELECT slot, pg_current_snapshot() AS seen,
        CASE WHEN pg_snapshot_xmax(again_seen) <= pg_snapshot_xmax(pg_current_snapshot())
            THEN again_seen ELSE pg_current_snapshot() END AS before
    FROM jobs_cursor ORDER BY id LIMIT 1
) AS c
