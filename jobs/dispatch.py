"""Dispatch: from committed rows to hints in the broker.

A run that becomes queued is written to the outbox in the same transaction. After the commit
its hint is published, with a deadline; what could not be published stays in the outbox, and
the sweep publishes it. A hint may be published twice: the row admits it once.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import cache, partial
from uuid import UUID

from celery import current_app
from django.db import connection, transaction

from fleet import Broker, BrokerUnavailable, Hint, crash_point
from jobs import database
from jobs.conf import setting

logger = logging.getLogger(__name__)

_HINTS = """
SELECT r.id, r.task, r.queue, o.slug, r.submission_id, r.attempt_count + 1, r.priority
FROM jobs_run r JOIN jobs_owner o ON o.id = r.owner_id
WHERE r.id = ANY(%s) AND r.state = 'queued' ORDER BY r.priority DESC, r.id
"""


@cache
def broker() -> Broker:
    """This process's way to the broker."""
    return Broker(current_app._get_current_object())


def publish_on_commit(run_ids: Sequence[UUID]) -> None:
    """Put queued runs in the outbox and publish their hints once the transaction commits."""
    if not run_ids:
        return
    [row] = database.query(
        "INSERT INTO jobs_outbox (run_ids, created_at) VALUES (%s, clock_timestamp()) RETURNING id",
        [list(run_ids)],
    )
    # Robust: the caller's commit has happened, and no trouble of ours may look as if it had not.
    transaction.on_commit(partial(_publish_committed, run_ids, row["id"]), robust=True)


def _publish_committed(run_ids: Sequence[UUID], outbox_id: int) -> None:
    crash_point("dispatch.after_commit")
    try:
        publish(run_ids)
    except BrokerUnavailable as error:
        logger.warning("%d hints stay in the outbox: %s", len(run_ids), error)
        return
    crash_point("dispatch.after_publish")
    clear_outbox([outbox_id])
    crash_point("dispatch.after_outbox_delete")


def publish(run_ids: Sequence[UUID]) -> int:
    """Publish a hint for each of these runs that is queued; return how many.

    Raises BrokerUnavailable after PUBLISH_TIMEOUT_SECONDS.
    """
    with connection.cursor() as cursor:
        cursor.execute(_HINTS, [list(run_ids)])
        hints = [
            Hint(str(run_id), task, queue, owner, submission, attempt, priority)
            for run_id, task, queue, owner, submission, attempt, priority in cursor
        ]
    crash_point("dispatch.before_publish")
    if hints:
        broker().publish(hints, timeout=setting("PUBLISH_TIMEOUT_SECONDS"))
    return len(hints)


def clear_outbox(ids: Sequence[int]) -> None:
    """Forget published batches. Not waiting for the disk: a batch that comes back is harmless."""
    with transaction.atomic():
        database.query("SET LOCAL synchronous_commit = off")
        database.query("DELETE FROM jobs_outbox WHERE id = ANY(%s)", [list(ids)])
