-- Read attempts whose texts are under another encryption key than one.
-- Parameters: run_id uuid and token int (attempts after this one), key smallint (0: in clear), most int.
-- Result: the texts, what they are bound to, and version: it changes with each change of the row.
SELECT a.run_id, a.token, a.error_message, a.traceback, a.error_data, a.error_key,
    concat(a.xmin, a.ctid) AS version, (SELECT r.owner_id FROM jobs_run AS r WHERE r.id = a.run_id) AS owner_id
FROM jobs_attempt AS a
WHERE (a.run_id, a.token) > (%(run_id)s, %(token)s)
  AND (a.error_data IS NOT NULL AND a.error_key <> %(key)s
       OR (a.error_message <> '' OR a.traceback <> '') AND %(key)s <> 0)
ORDER BY a.run_id, a.token
LIMIT %(most)s
