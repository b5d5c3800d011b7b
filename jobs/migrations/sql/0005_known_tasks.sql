-- Return the tasks that live workers know: one row for each queue and task. Task '*' stands for a
-- worker that does not report its tasks.
CREATE FUNCTION jobs_known_tasks(lease_seconds float8)
RETURNS TABLE (queue text, task text) LANGUAGE sql STABLE AS $$
    SELECT DISTINCT q.name, t.name
    FROM jobs_worker AS w
    CROSS JOIN jsonb_array_elements_text(
        CASE jsonb_typeof(w.queues) WHEN 'array' THEN w.queues ELSE '[]' END) AS q (name)
    CROSS JOIN jsonb_array_elements_text(
        CASE jsonb_typeof(w.tasks) WHEN 'array' THEN w.tasks ELSE '["*"]' END) AS t (name)
    WHERE w.stopped_at IS NULL
      AND w.heartbeat_at > clock_timestamp() - make_interval(secs => lease_seconds)
$$;
