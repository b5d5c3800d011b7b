-- How far the rollups are.
-- Parameters: none.
-- Result: one row: final_until, counted_until, boundary_at; is_passed: whether all transactions have
-- ended that could write attempts of minutes before `boundary_at`; now, by PostgreSQL's clock.
-- Keeps true: after a restore, the noted id may be one that this server has not reached; no transaction
-- of the old server is open then.
SELECT p.final_until, p.counted_until, p.boundary_at,
    coalesce(
        -- guard: a minute is final when no open transaction can add to it
        pg_snapshot_xmin(snapshot.it)::text::bigint >= p.boundary_xid
        OR pg_snapshot_xmax(snapshot.it)::text::bigint < p.boundary_xid,
        false
    ) AS is_passed,
    clock_timestamp() AS now
FROM jobs_rollupposition AS p
CROSS JOIN (SELECT pg_current_snapshot() AS it) AS snapshot
