-- The snapshots of this round and of the one before, and whether a job has become visible between.
-- Parameters: none.
-- Result: seen and before (snapshots, as text), slot (the cursor's), any (is there a job to read).
-- Keeps true: jobs are found by the transaction that wrote them, whatever clocks show and however
--   long it took: a write that is not in the snapshot of one round is found by a later one. In a
--   restored database the snapshot is of another server, and the rounds begin anew.
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
