"""Old rows of the tables that have no partitions, deleted in batches.

Ticks and rollups are deleted where they are made: `recurring/sql/make_ticks.sql`, `rollups`.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from django.db import transaction

from jobs.core import sql
from jobs.core.conf import setting
from jobs.system.retention.rules import Rules

BATCH: Final = 1_000
BATCHES: Final = 50
"""Batches of each table in one round at most."""
IMPORT_DAYS: Final = 2
"""A file that no user has confirmed is no longer offered after one day."""


def _deletion(table: str, condition: str) -> str:
    """Return the statement that deletes a batch of the rows with a condition."""
    return f"""
DELETE FROM {table} WHERE id IN (
    SELECT id FROM {table} WHERE {condition} LIMIT %(most)s FOR UPDATE SKIP LOCKED)
RETURNING 1
"""  # noqa: S608  of constants


_KEYS: Final = _deletion("jobs_idempotencykey", "created_at < %(before)s")
_MISSED: Final = _deletion("jobs_missed", "created_at < %(before)s AND last_at < %(before)s")
_AUDIT: Final = _deletion("jobs_auditentry", "at < %(before)s ORDER BY at")
# A worker that an open run names may be rescued from, or be alive and silent.
_WORKERS: Final = _deletion(
    "jobs_worker",
    """greatest(heartbeat_at, stopped_at) < %(before)s
        AND NOT EXISTS (SELECT FROM jobs_run r WHERE r.worker_id = jobs_worker.id
            AND r.state IN ('admitted', 'running', 'cancelling'))""",
)
_IMPORTS: Final = _deletion("jobs_jobimport", "created_at < %(before)s")
_DELIVERIES: Final = _deletion("jobs_webhookdelivery", "created_at < %(before)s")
_DELIVERIES_OF_DELETED: Final = """
DELETE FROM jobs_webhookdelivery WHERE id IN (
    SELECT d.id FROM jobs_webhookendpoint e CROSS JOIN LATERAL (
        SELECT id FROM jobs_webhookdelivery WHERE endpoint_id = e.id LIMIT %(most)s
        FOR UPDATE SKIP LOCKED) AS d
    WHERE e.deleted_at IS NOT NULL LIMIT %(most)s)
RETURNING 1
"""
_DELETED: Final = _deletion(
    "jobs_webhookendpoint",
    """deleted_at IS NOT NULL AND NOT EXISTS (
        SELECT FROM jobs_webhookdelivery d WHERE d.endpoint_id = jobs_webhookendpoint.id)""",
)
# What is due is sent first, whatever its age.
_DIGESTS: Final = _deletion(
    "jobs_maildigest", "held_count = 0 AND sending IS NULL AND next_at < %(before)s"
)
# A submission without runs. Its key may still be asked for it.
_SUBMISSIONS: Final = """
WITH old AS MATERIALIZED (
    SELECT s.id FROM jobs_submission s
    WHERE s.created_at < %(before)s AND s.id > %(after)s
        AND NOT EXISTS (SELECT FROM jobs_run r WHERE r.submission_id = s.id)
        AND NOT EXISTS (
            SELECT FROM jobs_backfill b WHERE b.submission_id = s.id AND b.done_at IS NULL)
    ORDER BY s.id LIMIT %(most)s FOR UPDATE SKIP LOCKED
), backfills AS (
    DELETE FROM jobs_backfill b USING old WHERE b.submission_id = old.id
), rollouts AS (
    DELETE FROM jobs_rollout r USING old WHERE r.submission_id = old.id
)
SELECT id FROM old
"""


def remove_keys(rules: Rules) -> tuple[int, bool]:
    """Delete old idempotency keys; return how many, and whether none is left.

    First of all: a key that is not deleted must find its run.
    """
    return _remove(_KEYS, rules.before(rules.key_days))


def remove_others(rules: Rules) -> dict[str, int]:
    """Delete old rows of the other tables; return how many of each."""
    return {
        "missed": _remove(_MISSED, rules.before(setting("MISSED_DAYS")))[0],
        "audit": _remove(_AUDIT, rules.before(setting("AUDIT_DAYS")))[0],
        "workers": _remove(_WORKERS, rules.before(setting("WORKER_DAYS")))[0],
        "imports": _remove(_IMPORTS, rules.before(IMPORT_DAYS))[0],
        "deliveries": _remove(_DELIVERIES, rules.before(setting("WEBHOOK_DAYS")))[0]
        + _remove(_DELIVERIES_OF_DELETED)[0],
        "webhooks": _remove(_DELETED)[0],
        "mails": _remove(_DIGESTS, rules.before(setting("WEBHOOK_DAYS")))[0],
        "submissions": _remove_submissions(rules),
    }


def _remove(statement: str, before: datetime | None = None) -> tuple[int, bool]:
    """Delete rows in batches; return how many, and whether none is left."""
    total = 0
    for _ in range(BATCHES):
        with transaction.atomic():
            # Lets the trigger of the audit pass.
            sql.query("SELECT set_config('fairshift.removes_history', 'on', true)")
            gone = len(sql.query(statement, {"before": before, "most": BATCH}))
        total += gone
        if gone < BATCH:
            return total, True
    return total, False


def _remove_submissions(rules: Rules) -> int:
    """Delete submissions whose runs are all gone, with their backfills and rollouts."""
    before, total = rules.before(max(rules.run_days, rules.key_days)), 0
    for _ in range(BATCHES):
        with transaction.atomic():
            rows = sql.query(_SUBMISSIONS, {"before": before, "after": 0, "most": BATCH})
            ids = [row["id"] for row in rows]
            # In a second statement: the constraint of backfills is checked at its end.
            sql.query("DELETE FROM jobs_submission WHERE id = ANY(%s)", [ids])
        total += len(ids)
        if len(ids) < BATCH:
            break
    return total
