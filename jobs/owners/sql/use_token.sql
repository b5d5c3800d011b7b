-- Return the usable token with a digest, and note its use.
-- Parameters: digest.
-- Result: the token's columns. No row: there is no usable token.
-- Keeps true: a revoked or expired token, and one whose maker is deleted, finds nothing from the
--     commit on; last_used_at is written
--     at most once a minute, and no request waits for another one that writes it.
WITH due AS (
    SELECT id FROM jobs_apitoken
    WHERE digest = %(digest)s::bytea
        AND (last_used_at IS NULL OR last_used_at < statement_timestamp() - interval '1 minute')
    FOR UPDATE SKIP LOCKED
), used AS (
    UPDATE jobs_apitoken SET last_used_at = statement_timestamp()
    WHERE id = (SELECT id FROM due)
        AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > statement_timestamp())
        AND (NOT has_maker OR coalesce(created_by_id::text, created_by_token_id::text) IS NOT NULL)
)
SELECT id, owner_id, name, prefix, digest, scopes, has_maker, created_by_id, created_by_token_id,
    created_at, expires_at, revoked_at, last_used_at
FROM jobs_apitoken
WHERE digest = %(digest)s::bytea
    AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > statement_timestamp())
    AND (NOT has_maker OR coalesce(created_by_id::text, created_by_token_id::text) IS NOT NULL)
