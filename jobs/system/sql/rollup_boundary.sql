-- Note the next transaction id for the minutes that have ended, unless an earlier one is noted.
-- Parameters: minute timestamptz: the running minute, read before this statement.
-- Result: none.
-- Keeps true: a transaction with that id or a later one gets its id after this statement began, and
-- writes attempts with a later time: `recorded_at` is read when a transaction has its id. (A clock that
-- is put back breaks this: minutes that are final are not counted again.)
UPDATE jobs_rollupposition SET
    boundary_at = %(minute)s, boundary_xid = pg_snapshot_xmax(pg_current_snapshot())::text::bigint
WHERE boundary_at IS NULL AND final_until < %(minute)s
