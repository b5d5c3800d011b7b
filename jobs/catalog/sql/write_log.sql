-- Write chunks of an attempt's log, and remove those that make room for them.
-- Parameters: id uuid, token int; arrays, one element a chunk: first_line, line_count, first_at (seconds
-- since 1970), key, data; removed int[] (first lines).
-- Result: the state of its run; no row if the attempt is not the newest one, or has ended.
-- Keeps true: only the newest token of an active run writes; a chunk that is there is not written again.
-- Cost: no wait for the disk: the outcome of the attempt, which is committed later, brings this along.
WITH run AS MATERIALIZED (
    SELECT state, set_config('synchronous_commit', 'off', true) FROM jobs_run
    -- guard: an attempt that is out of date writes no log
    WHERE id = %(id)s AND token = %(token)s AND state || '' IN ('admitted', 'running', 'cancelling')
), gone AS (
    DELETE FROM jobs_log USING run
    WHERE run_id = %(id)s AND token = %(token)s AND first_line = ANY(%(removed)s::int[])
), written AS (
    INSERT INTO jobs_log (run_id, token, first_line, line_count, first_at, key, data)
    SELECT %(id)s, %(token)s, c.first_line, c.line_count, to_timestamp(c.first_at), c.key, c.data
    FROM run, unnest(%(first_line)s::int[], %(line_count)s::int[], %(first_at)s::float8[],
        %(key)s::smallint[], %(data)s::bytea[]) AS c(first_line, line_count, first_at, key, data)
    ON CONFLICT DO NOTHING
)
SELECT state FROM run
