"""The sweep: finds work that is committed and has no hint in the broker, and publishes it.

Hints get lost in four ways: they never reached Redis (the outbox still lists them), Redis
was emptied or fell back to an older copy (its queues are in a new epoch), they died with a worker
(overdue), or nobody was there to publish them when a cap, lock or pause ended (blocked). A hint
that is published once too often costs a look at its row.

It also tells Celery of ends that a process, dying after the commit, left untold, and the fair
queues of what owners may have.
"""

from __future__ import annotations

import logging
import math
import time
from typing import Final
from uuid import UUID

from django.db import transaction

from fleet import BrokerUnavailable, counted, crash_point
from jobs.core import sql
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
"""For so long a worker that has met an emptied queue helps to fill it, and admits nothing."""

WITH_BACKLOG: Final = 25
"""How many runs of a queue are published again in one sweep while it holds messages.

A queue hands out its oldest messages first, so what was lost is soon the oldest that waits: a
few a sweep find it, and a long queue is not filled with doubles.
"""

_OUTBOX = """
SELECT id, run_ids FROM jobs_outbox
WHERE created_at < clock_timestamp() - make_interval(secs => %s)
ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED
"""
_QUEUED_AFTER = """
SELECT id FROM jobs_run WHERE state = 'queued' AND blocked_by = '' AND id > %s ORDER BY id LIMIT %s
"""
_OVERDUE_QUEUES = """
SELECT DISTINCT queue FROM jobs_run
WHERE state = 'queued' AND blocked_by = '' AND hint_check_at <= clock_timestamp()
"""
# The next look at a run comes when it has waited twice as long as now, within an hour.
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
    """Publish every hint that may be missing, and tell Celery and the queues what they missed.

    Returns how many there were, by the way they were found.

    Raises BrokerUnavailable while the broker is away: the next sweep goes on.
    """
    # First: after a flush, hints of an owner that is paused meet queues that know of it.
    fair_queue.publish_all_settings()
    return {
        "flushed": publish_after_flush() or 0,
        "outbox": publish_outbox(),
        "overdue": publish_overdue(),
        "freed": unblocking.publish_unblocked(owner_ids=None, lock_keys=None)
        + unblocking.publish_with_known_task(),
        "told": notify_missed(),
    }


def publish_outbox() -> int:
    """Publish what was committed and not published within a sweep's time; return how many.

    What is published of a batch stays so: raises BrokerUnavailable with the rest in the outbox.
    """
    total = 0
    while True:
        with transaction.atomic():
            batches = sql.query(_OUTBOX, [setting("SWEEP_SECONDS")])
            if not batches:
                return total
            [batch] = batches
            rest = publish_slices(batch["run_ids"])
            crash_point("sweep.after_publish")
            shrink_outbox(batch["id"], batch["run_ids"], rest=rest)
        if rest:
            raise BrokerUnavailable(
                f"{counted(len(rest), 'hint')} of one batch not published, left in the outbox"
            )
        total += len(batch["run_ids"])


def prime() -> None:
    """Tell queues that were emptied, or fell back to an older copy, what cannot wait for a sweep.

    What owners may have, and as many hints as a moment allows; the next sweep makes the others.
    """
    try:
        publish_after_flush(seconds=PRIME_SECONDS)
    except BrokerUnavailable as error:
        logger.warning("the sweep will tell the queues what they have forgotten: %s", error)


@sql.alone
def publish_after_flush(*, seconds: float = math.inf) -> int:
    """Tell queues in a new epoch of all owners, and publish every queued run; return how many.

    In so many seconds at most: what is not finished then is begun anew by the next call.
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
        logger.warning("the broker had lost its hints: published %d queued runs again", total)
    return total


def publish_overdue() -> int:
    """Publish queued runs again that have waited so long that their hint may be lost.

    Where the broker holds messages, it may still be among them, so that only some are published
    in one sweep, those that are overdue for longest; where it holds none, all are. Each run is
    left alone for as long as it has waited, a lease at least and an hour at most: a queue that
    is merely long is not filled with doubles. A double costs a look at its row.
    """
    queues = [row["queue"] for row in sql.query(_OVERDUE_QUEUES)]
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
        logger.warning("queue %s had lost %s: published again", queue, counted(total, "hint"))
    return total
