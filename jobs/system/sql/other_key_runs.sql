-- Read runs that have something under another encryption key than one.
-- Parameters: id uuid (ids above it), key smallint (0: in clear), most int.
-- Result: the columns that are encrypted, what they are bound to, and version: it changes with each
--   change of the row. In the order of ids.
SELECT r.id, r.owner_id, r.job_id, r.payload, r.payload_key, r.result, r.result_key,
    r.error_message, r.error_data, r.error_key, r.checkpoint, r.checkpoint_key, r.looks, r.looks_key,
    concat(r.xmin, r.ctid) AS version
FROM jobs_run AS r
WHERE r.id > %(id)s
  AND (r.payload_key <> %(key)s
       OR r.result IS NOT NULL AND r.result_key <> %(key)s
       OR r.error_data IS NOT NULL AND r.error_key <> %(key)s
       OR r.checkpoint IS NOT NULL AND r.checkpoint_key <> %(key)s
       OR r.looks IS NOT NULL AND r.looks_key <> %(key)s
       OR r.error_message <> '' AND %(key)s <> 0)
ORDER BY r.id
LIMIT %(most)s
