-- Write chunks of logs under another key. A chunk never changes, but may have been removed.
-- Parameters: side by side: runs uuid[], tokens, firsts int[], datas bytea[]; key smallint.
-- Result: run_id of each chunk that was written.
UPDATE jobs_log AS l SET data = g.data, key = %(key)s
FROM unnest(%(runs)s::uuid[], %(tokens)s::int[], %(firsts)s::int[], %(datas)s::bytea[])
    AS g (run_id, token, first_line, data)
WHERE l.run_id = g.run_id AND l.token = g.token AND l.first_line = g.first_line
  AND l.run_id = ANY(%(runs)s::uuid[])
RETURNING l.run_id
