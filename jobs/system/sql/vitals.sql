-- The numbers by which an installation is watched.
-- Parameters: beat text: the name of beat's lease; most int: batches of the outbox that are looked at.
-- Result: one row: now; beat_until, pulsed_at, final_until timestamptz or null; due_slot: the first slot
-- that was not triggered, or null; unpublished: runs in the oldest batches; unpublished_since; bytes: the
-- size of the database.
-- Cost: a few rows by index; the size asks the file system for each file of a table.
SELECT clock_timestamp() AS now,
    (SELECT until FROM jobs_leader WHERE name = %(beat)s) AS beat_until,
    cursor.beat_at AS pulsed_at,
    least(cursor.slot, (SELECT min(first_slot) FROM jobs_tick WHERE done_at IS NULL)) AS due_slot,
    (SELECT final_until FROM jobs_rollupposition) AS final_until,
    oldest.unpublished, oldest.unpublished_since,
    pg_database_size(current_database()) AS bytes
FROM (
    SELECT coalesce(sum(cardinality(run_ids)), 0)::bigint AS unpublished,
        min(created_at) AS unpublished_since
    FROM (SELECT run_ids, created_at FROM jobs_outbox ORDER BY id LIMIT %(most)s) AS batches
) AS oldest
LEFT JOIN (SELECT slot, beat_at FROM jobs_cursor ORDER BY id LIMIT 1) AS cursor ON true
