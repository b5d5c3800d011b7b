-- A part of other statements: audit the webhooks and the mail subscriptions that went with their jobs.
-- Parameters: actor_id, token_id bigint, actor_name text. Reads: hooks and mails (id, owner_id, name).
INSERT INTO jobs_auditentry (
        actor_id, token_id, actor_name, action, object_type, object_id, owner_id, reason, details)
    SELECT %(actor_id)s::bigint, %(token_id)s::bigint, coalesce(%(actor_name)s::text, ''), n.action,
        n.object_type, n.id::text, n.owner_id, '', jsonb_build_object('name', n.name)
    FROM (
        SELECT 'delete webhook' AS action, 'webhookendpoint' AS object_type, id, owner_id, name FROM hooks
        UNION ALL
        SELECT 'delete mail subscription', 'mailsubscription', id, owner_id, name FROM mails
    ) AS n
