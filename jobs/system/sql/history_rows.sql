-- Return the runs of a day that leave, each with all its columns, its attempts, its logs, and its owner's slug.
-- {source}: the table with them, from %(low)s to %(high)s; {condition}: which of them leave.
SELECT row_to_json(r)::text AS run, o.slug,
    (SELECT json_agg(a ORDER BY a.token)::text FROM jobs_attempt a
     WHERE a.run_id = r.id AND a.run_id >= %(low)s AND a.run_id < %(high)s) AS attempts,
    (SELECT json_agg(l ORDER BY l.token, l.first_line)::text FROM jobs_log l
     WHERE l.run_id = r.id AND l.run_id >= %(low)s AND l.run_id < %(high)s) AS logs,
    (SELECT count(*) FROM jobs_attempt a
     WHERE a.run_id = r.id AND a.run_id >= %(low)s AND a.run_id < %(high)s) AS attempt_count
FROM {source} r LEFT JOIN jobs_owner o ON o.id = r.owner_id
WHERE r.id >= %(low)s AND r.id < %(high)s AND {condition}
