-- Submit one run that is due at once, for an owner without calendars: all of it in one statement.
-- Parameters: owner_id bigint, slug text (one may be null); target text (its name; '' for none); tail text (the 20
--   hex digits of the id after its time); key text and fingerprint bytea (an idempotency key; null
--   for none); deadline float (seconds from now; null for none); lease float (seconds); lock text;
--   columns of jobs_run by name.
-- Result: one row: id, created_at, owner_id, slug, target_id, lock_key, deadline_at, hint_check_at,
--   history, outbox_id. No row, and nothing
--   stored, if there is no such owner or target, if calendars apply, or if the key is known.
-- Keeps true: owner, calendars, clock, row, key and outbox are of one moment. A run and its outbox
--   row are committed together.
-- Cost: rows are found by unique indexes; a concurrent transaction with the same key is waited for.
WITH moment AS MATERIALIZED (SELECT clock_timestamp() AS at),
own AS MATERIALIZED (
    SELECT o.id AS owner_id, o.slug, t.id AS target_id, moment.at,
        -- guard: time in ids comes from PostgreSQL
        (lpad(to_hex(floor(extract(epoch FROM moment.at) * 1000)::bigint), 12, '0') || %(tail)s::text)::uuid
            AS run_id
    FROM moment
    CROSS JOIN jobs_owner AS o
    LEFT JOIN jobs_target AS t ON t.owner_id = o.id AND t.name = %(target)s::text
    WHERE o.id = coalesce(
            %(owner_id)s::bigint, (SELECT id FROM jobs_owner WHERE slug = %(slug)s::text))
      -- guard: the payload is encrypted for the owner of this slug
      AND (%(slug)s::text IS NULL OR o.slug = %(slug)s::text)
      -- guard: where calendars apply, they decide the first state of a run
      AND o.calendar_version = 0
      AND (%(target)s::text = '' OR t.id IS NOT NULL)
), claimed AS (
    INSERT INTO jobs_idempotencykey (owner_id, key, fingerprint, run_id, created_at)
    SELECT owner_id, %(key)s::text, %(fingerprint)s::bytea, run_id, at FROM own WHERE %(key)s::text IS NOT NULL
    -- guard: a key makes one run
    ON CONFLICT (owner_id, key) DO NOTHING
    RETURNING id
), made AS (
    INSERT INTO jobs_run (
        id, owner_id, target_id, task, queue, state, priority, payload, payload_key, labels, max_attempts,
        policy, options, lock_key, created_at, deadline_at, queued_at, hint_check_at, history)
    SELECT run_id, owner_id, target_id, %(task)s, %(queue)s, 'queued', %(priority)s,
        %(payload)s, %(payload_key)s, %(labels)s::jsonb, %(max_attempts)s, %(policy)s::jsonb, %(options)s::jsonb,
        CASE WHEN %(lock)s::text = '' THEN '' ELSE slug || ':' || %(lock)s::text END,
        at, at + make_interval(secs => %(deadline)s::float8), at,
        at + make_interval(secs => %(lease)s),
        jsonb_build_array(jsonb_build_array('queued', extract(epoch FROM at), ''))
    FROM own
    WHERE %(key)s::text IS NULL OR EXISTS (SELECT FROM claimed)
    RETURNING id, created_at, lock_key, deadline_at, hint_check_at, history
), listed AS (
    INSERT INTO jobs_outbox (run_ids, created_at) SELECT ARRAY[id], created_at FROM made
    RETURNING id
)
SELECT made.*, own.owner_id, own.slug, own.target_id, listed.id AS outbox_id
FROM made CROSS JOIN own CROSS JOIN listed
