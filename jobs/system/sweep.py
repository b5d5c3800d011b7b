"""The sweep: publishes hints of queued runs that are missing in the broker.

A hint is missing if it never reached Redis (it is in the outbox), if Redis was emptied or restored
from an older copy (its queues have a new epoch), or if a worker died with it (overdue). A run that
waited for a cap, lock or pause (blocked) has no hint if the process that had to publish one died.
A hint that is published twice costs one read of its row.

The sweep also reports missed ends to Celery, and sends owners' settings to the fair queues.
"""

from __future__ import annotations

import logging
import math
import time
from typing import Final
from uuid import UUID

from django.db import transaction

from fleet import BrokerUnavailable, counted, crash_point
from jobs.core import log_events, prepared, sql
from jobs.core.conf import setting
from jobs.owners import fair_queue
from jobs.runs import unblocking
from jobs.runs.celery_outcomes import notify_missed
from jobs.runs.dispatch import (
    broker,
    owners,
    publish,
    publish_on_commit,
    publish_slices,
    shrink_outbox,
)

logger = logging.getLogger(__name__)

CHUNK: Final = 1_000
PRIME_SECONDS: Final = 1.0
"""Seconds for which a worker that finds an emptied queue fills it, before it admits runs."""

WITH_BACKLOG: Final = 25
"""How many overdue runs one sweep may publish again for a queue that has messages. The queue
delivers its oldest messages first, so runs with lost hints are soon the oldest."""

# The oldest batches, until they have `runs` runs together.
_OUTBOX = """
WITH old AS MATERIALIZED (
    SELECT id, run_ids FROM jobs_outbox
    WHERE created_at < clock_timestamp() - make_interval(secs => %(age)s)
    ORDER BY id LIMIT %(runs)s FOR UPDATE SKIP LOCKED
)
SELECT id, run_ids FROM (
    SELECT id, run_ids,
        sum(cardinality(run_ids)) OVER (ORDER BY id) - cardinality(run_ids) AS before
    FROM old
) AS counted
WHERE before < %(runs)s ORDER BY id
"""
_QUEUED_AFTER = """
SELECT id FROM jobs_run WHERE state = 'queued' AND blocked_by = '' AND id > %s ORDER BY id LIMIT %s
"""
_OVERDUE_QUEUES = """
SELECT DISTINCT queue FROM jobs_run
WHERE state = 'queued' AND blocked_by = '' AND hint_check_at <= clock_timestamp()
"""
# The next check comes when the run has waited twice as long, after an hour at most.
_TAKE_OVERDUE = """
WITH taken AS MATERIALIZED (
    SELECT id FROM jobs_run
    WHERE state = 'queued' AND blocked_by = '' AND queue = %(queue)s
      AND hint_check_at <= clock_timestamp()
    ORDER BY hint_check_at LIMIT %(most)s FOR UPDATE SKIP LOCKED
)
UPDATE jobs_run r SET hint_check_at = clock_timestamp() + least(
    interval '1 hour',
    greatest(clock_timestamp() - r.queued_at, make_interval(secs => %(lease)s)))
FROM taken t WHERE r.id = t.id
RETURNING r.id
"""


def sweep_hints() -> dict[str, int]:
    """Publish all hints that may be missing; return counts by cause. Raises BrokerUnavailable."""
    # First: after a flush, the queues must know who is paused before they get hints.
    fair_queue.publish_all_settings()
    return {
        "flushed": publish_after_flush() or 0,
        "outbox": publish_outbox(),
        "overdue": publish_overdue(),
        "freed": unblocking.publish_unblocked(owner_ids=None, lock_keys=None)
        + unblocking.publish_with_known_task()
        + unblocking.publish_with_known_key(),
        "notified": notify_missed(),
    }


def publish_outbox() -> int:
    """Publish outbox rows older than SWEEP_SECONDS; return how many hints. The rest stays."""
    total = 0
    while True:
        with transaction.atomic():
            rows = sql.query(_OUTBOX, {"age": setting("SWEEP_SECONDS"), "runs": CHUNK})
            if not rows:
                return total
            batches = [(row["id"], row["run_ids"]) for row in rows]
            run_ids = [run_id for _, its_runs in batches for run_id in its_runs]
            published = publish_slices(run_ids)
            crash_point("sweep.after_publish")
            shrink_outbox(batches, published=published)
        if published < len(run_ids):
            left = counted(len(run_ids) - published, "hint")
            raise BrokerUnavailable(f"{left} not published, left in the outbox")
        total += published


def prime() -> None:
    """Fill emptied queues for PRIME_SECONDS: settings, then hints. The sweep does the rest."""
    try:
        publish_after_flush(seconds=PRIME_SECONDS)
    except BrokerUnavailable as error:
        log_events.QUEUES_LEFT_TO_SWEEP.log(logger, error=error)


@sql.alone
def publish_after_flush(*, seconds: float = math.inf) -> int:
    """Send all owners' settings to queues in a new epoch, and publish every queued run there.

    Returns how many. If it takes longer than `seconds`, the next call starts again.
    """
    timeout = setting("PUBLISH_TIMEOUT_SECONDS")
    until = time.monotonic() + seconds
    known = owners().epochs(timeout=timeout)
    epochs = {queue: epoch for queue, epoch in known.items() if not epoch.is_filled}
    if not epochs:
        return 0
    fair_queue.publish_all_settings()
    owners().prime(epochs, "told", timeout=timeout)
    total, last = 0, UUID(int=0)
    while rows := sql.query(_QUEUED_AFTER, [last, CHUNK]):
        if time.monotonic() > until:
            return total
        last = rows[-1]["id"]
        total += publish([row["id"] for row in rows])
    owners().prime(epochs, "filled", timeout=timeout)
    if total:
        log_events.HINTS_REPUBLISHED.log(logger, count=total)
    return total


def publish_overdue() -> int:
    """Publish queued runs again that have waited for long, since their hints may be lost.

    If the queue has messages, the hint may be among them: only WITH_BACKLOG are published in one
    sweep. A run is checked again when it has waited twice as long, after a lease to an hour.
    """
    queues = [row["queue"] for row in prepared.query(_OVERDUE_QUEUES)]
    return sum(_publish_overdue(queue) for queue in queues)


def _publish_overdue(queue: str) -> int:
    is_empty = not broker().backlog(queue, timeout=setting("PUBLISH_TIMEOUT_SECONDS"))
    most = CHUNK if is_empty else WITH_BACKLOG
    total = 0
    while True:
        with transaction.atomic():
            rows = sql.query(
                _TAKE_OVERDUE, {"queue": queue, "lease": setting("LEASE_SECONDS"), "most": most}
            )
            publish_on_commit([row["id"] for row in rows])
        total += len(rows)
        if not is_empty or len(rows) < most:
            break
    if is_empty and total:
        log_events.QUEUE_HAD_LOST_HINTS.log(logger, queue=queue, count=total)
    return total
