-- Find what keeps vacuum from removing dead rows, or the server from removing WAL.
-- Parameters: seconds float8: the age of a transaction that is reported; transactions int: its age, or a
-- slot's, in transactions, where the seconds are not known; bytes int8: of WAL that a slot keeps.
-- Result: at most one row of each kind (transaction, prepared, slot), the oldest: kind, pid (null: none),
-- name (of the application, of the prepared transaction, of the slot), username, seconds (null: not
-- visible, or of a slot), transactions, bytes (of a slot).
-- Keeps true: only what pins is returned. A transaction without a snapshot and without an id pins nothing,
-- and neither does a vacuum. A user without pg_read_all_stats sees no begin of other users' transactions.
-- Cost: that of pg_stat_activity.
SELECT DISTINCT ON (kind) kind, pid, name, username, seconds, transactions, bytes
FROM (
    SELECT 'transaction' AS kind, pid, application_name AS name, usename AS username,
        extract(epoch FROM clock_timestamp() - xact_start)::float8 AS seconds,
        greatest(age(backend_xmin), age(backend_xid)) AS transactions, NULL::int8 AS bytes
    FROM pg_stat_activity
    -- A standby that feeds its snapshot back has no database.
    WHERE (datname = current_database() OR datname IS NULL) AND leader_pid IS NULL
        AND pid <> pg_backend_pid()
        AND (backend_xmin IS NOT NULL OR backend_xid IS NOT NULL)
        AND pid NOT IN (SELECT pid FROM pg_stat_progress_vacuum)
    UNION ALL
    SELECT 'prepared', NULL, gid, owner,
        extract(epoch FROM clock_timestamp() - prepared)::float8, age(transaction), NULL
    FROM pg_prepared_xacts WHERE database = current_database()
    UNION ALL
    SELECT 'slot', active_pid, slot_name, NULL, NULL,
        coalesce(greatest(age(xmin), age(catalog_xmin)), 0),
        CASE WHEN pg_is_in_recovery() OR restart_lsn IS NULL THEN 0
            ELSE pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn)::int8 END
    FROM pg_replication_slots
) AS found
WHERE seconds >= %(seconds)s OR bytes >= %(bytes)s
    OR (seconds IS NULL AND transactions >= %(transactions)s)
ORDER BY kind, seconds DESC NULLS LAST, bytes DESC, transactions DESC
