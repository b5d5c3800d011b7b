"""The sweep: finds work that is committed and has no hint in the broker, and publishes it.

Hints get lost in four ways: they never reached Redis (the outbox still lists them), Redis
was emptied (its epoch is gone), they died with a worker or an older copy of Redis (overdue),
or nobody was there to publish them when a cap, lock or pause ended (blocked). A hint that is
published once too often costs a look at its row.
"""

from __future__ import annotations

import logging
from typing import Any, Final
from uuid import UUID, uuid4

from django.db import transaction

from fleet import crash_point
from jobs import database, unblocking
from jobs.conf import setting
from jobs.dispatch import broker, clear_outbox, publish

logger = logging.getLogger(__name__)

CHUNK: Final = 1_000

_OUTBOX = """
SELECT id, run_ids FROM jobs_outbox
WHERE created_at < clock_timestamp() - make_interval(secs => %s)
ORDER BY id LIMIT 100 FOR UPDATE SKIP LOCKED
"""
_QUEUED_AFTER = """
SELECT id FROM jobs_run WHERE state = 'queued' AND blocked_by = '' AND id > %s ORDER BY id LIMIT %s
"""
_OVERDUE_COUNTS = """
SELECT queue, count(*) FROM jobs_run
WHERE state = 'queued' AND blocked_by = ''
  AND queued_at < clock_timestamp() - make_interval(secs => %s)
GROUP BY queue
"""
_TAKE_OVERDUE = """
UPDATE jobs_run SET queued_at = clock_timestamp() WHERE id IN (
    SELECT id FROM jobs_run
    WHERE state = 'queued' AND blocked_by = '' AND queue = %s
      AND queued_at < clock_timestamp() - make_interval(secs => %s)
    ORDER BY queued_at LIMIT %s FOR UPDATE SKIP LOCKED
) RETURNING id
"""


def sweep() -> dict[str, int]:
    """Publish every hint that may be missing; return how many were, by the way they were found.

    Raises BrokerUnavailable while the broker is away: the next sweep goes on.
    """
    return {
        "flushed": publish_after_flush(),
        "outbox": publish_outbox(),
        "overdue": publish_overdue(),
        "freed": unblocking.publish_freed(owner_ids=None, lock_keys=None),
    }


def publish_outbox() -> int:
    """Publish what was committed and not published within a sweep's time."""
    total = 0
    while True:
        with transaction.atomic():
            batches = database.query(_OUTBOX, [setting("SWEEP_SECONDS")])
            for batch in batches:
                total += publish(batch["run_ids"])
            crash_point("sweep.after_publish")
            clear_outbox([batch["id"] for batch in batches])
        if not batches:
            return total


def publish_after_flush() -> int:
    """Publish every queued run when the broker does not know its epoch, then name it a new one."""
    timeout = setting("PUBLISH_TIMEOUT_SECONDS")
    known = broker().epoch(timeout=timeout)
    if known is not None and known.startswith("ready:"):
        return 0
    # A flush in the middle takes this mark with it, and the next sweep begins again.
    mark = uuid4().hex
    broker().epoch(timeout=timeout, become=f"building:{mark}")
    total, last = 0, UUID(int=0)
    while rows := database.query(_QUEUED_AFTER, [last, CHUNK]):
        last = rows[-1]["id"]
        total += publish([row["id"] for row in rows])
    if broker().epoch(timeout=timeout) == f"building:{mark}":
        broker().epoch(timeout=timeout, become=f"ready:{mark}")
    if total:
        logger.warning("the broker had lost its hints: published %d queued runs again", total)
    return total


def publish_overdue() -> int:
    """Publish the oldest queued runs where the broker holds fewer messages than rows wait.

    A queue is a list: a hint that waits longer than a lease while the list is shorter than
    the number of rows that old cannot be in it for all of them.
    """
    lease = setting("LEASE_SECONDS")
    total = 0
    for row in database.query(_OVERDUE_COUNTS, [lease]):
        total += _publish_missing(row, lease=lease)
    return total


def _publish_missing(row: dict[str, Any], *, lease: float) -> int:
    waiting = broker().backlog(row["queue"], timeout=setting("PUBLISH_TIMEOUT_SECONDS"))
    missing = row["count"] - waiting
    if missing <= 0:
        return 0
    with transaction.atomic():
        rows = database.query(_TAKE_OVERDUE, [row["queue"], lease, missing])
    logger.warning("%d hints of queue %s were lost: published again", len(rows), row["queue"])
    return publish([row["id"] for row in rows])
