-- Read what an attempt may want to know of its run.
-- Parameters: id uuid, token int.
-- Result: is_wanted (the attempt is the newest one, and is not to stop), checkpoint, checkpoint_key; no
-- row if the run is gone.
SELECT token = %(token)s AND state IN ('admitted', 'running') AS is_wanted, checkpoint, checkpoint_key
FROM jobs_run WHERE id = %(id)s
