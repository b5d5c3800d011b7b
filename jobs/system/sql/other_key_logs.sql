-- Read chunks of logs that are under another encryption key than one.
-- Parameters: run_id uuid, token int and first_line int (chunks after this one), key smallint (0: in clear),
-- most int.
-- Result: the chunks, and what they are bound to.
SELECT l.run_id, l.token, l.first_line, l.key, l.data,
    (SELECT r.owner_id FROM jobs_run AS r WHERE r.id = l.run_id) AS owner_id
FROM jobs_log AS l
WHERE (l.run_id, l.token, l.first_line) > (%(run_id)s, %(token)s, %(first_line)s) AND l.key <> %(key)s
ORDER BY l.run_id, l.token, l.first_line
LIMIT %(most)s
