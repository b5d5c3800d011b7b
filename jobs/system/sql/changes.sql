-- Return a text that is another one after any change of our rows, from counters that PostgreSQL has.
-- Parameters: unread text[]: tables that do not count; beating text[]: those whose updates do not.
-- Result: one row: changes; null while PostgreSQL counts nothing (track_counts).
-- Keeps true: a session reports its counts after its commit is visible, 10 s later at most. So a text
-- that was read before the rows differs from the one after a later change.
-- Cost: no row of ours is read; three counters of each table and partition.
SELECT CASE WHEN current_setting('track_counts')::boolean THEN concat_ws('.',
    extract(epoch FROM pg_postmaster_start_time()), count(*), sum(c.oid::bigint),
    sum(pg_stat_get_tuples_inserted(c.oid) + pg_stat_get_tuples_deleted(c.oid)
        + CASE WHEN c.relname = ANY(%(beating)s::text[]) THEN 0
            ELSE pg_stat_get_tuples_updated(c.oid) END)
) END AS changes
FROM pg_class AS c
WHERE c.relkind = 'r' AND c.relname LIKE 'jobs\_%%' AND c.relname <> ALL(%(unread)s::text[])
    -- What tasks log is polled by itself.
    AND c.relname NOT LIKE 'jobs\_log%%'
    AND c.relnamespace = (
    SELECT relnamespace FROM pg_class WHERE oid = 'jobs_owner'::regclass)
