-- The snapshots of this round and of the one before, and whether a job has become visible between.
-- Parameters: none.
-- Result: seen and before (snapshots, as text), slot (the cursor's), any (is there a job to read), begins
--   (whether the stored snapshot is of another server).
-- Keeps true: jobs are found by the transaction that wrote them, whatever clocks show and however
--   long it took: a write that is not in the snapshot of one round is found by a later one. In a
--   restored database the snapshot is of another server, and the rounds begin anew.
SELECT c.seen::text, c.before::text, c.slot, c.begins, EXISTS (
    SELECT FROM jobs_job AS j
    WHERE j.changed_xid >= pg_snapshot_xmin(c.before)
        AND NOT pg_visible_in_snapshot(j.changed_xid, c.before)
        AND pg_visible_in_snapshot(j.changed_xid, c.seen)
) AS any
FROM (
    SELECT slot, pg_current_snapshot() AS seen, begins,
        CASE WHEN begins THEN pg_current_snapshot() ELSE again_seen END AS before
    FROM jobs_cursor
    CROSS JOIN LATERAL (
        SELECT coalesce(
            pg_snapshot_xmax(again_seen) > pg_snapshot_xmax(pg_current_snapshot()), true) AS begins
    ) AS stored
    ORDER BY id LIMIT 1
) AS c
