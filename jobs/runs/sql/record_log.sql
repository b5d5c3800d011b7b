-- Write what the reports of ends bring of the attempts' logs.
-- Parameters: ids uuid[], tokens int[], first_line, line_count int[], first_at float8[] (seconds since 1970),
-- key smallint[], data bytea[]: one element a chunk.
-- Result: run_id of each chunk that was written.
-- Keeps true: only the newest token of an active run writes; a chunk that is there is not written again.
-- Cost: no wait for the disk: the outcomes, which are recorded next, bring it along.
WITH quiet AS MATERIALIZED (
    SELECT set_config('synchronous_commit', 'off', true)
)
INSERT INTO jobs_log (run_id, token, first_line, line_count, first_at, key, data)
SELECT c.id, c.token, c.first_line, c.line_count, to_timestamp(c.first_at), c.key, c.data
FROM quiet, unnest(%(ids)s::uuid[], %(tokens)s::int[], %(first_line)s::int[], %(line_count)s::int[],
    %(first_at)s::float8[], %(key)s::smallint[], %(data)s::bytea[])
    AS c(id, token, first_line, line_count, first_at, key, data)
WHERE (
    SELECT true FROM {runs} r
    -- guard: an attempt that is out of date records no log
    WHERE r.id = c.id AND r.token = c.token AND r.state || '' IN ('admitted', 'running', 'cancelling')
      AND ({is_one_day} OR r.id = ANY(%(ids)s))
)
ON CONFLICT DO NOTHING
RETURNING run_id
