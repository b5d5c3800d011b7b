"""The system's own Celery tasks, one call each, for a queue and a worker of their own.

celery-beat sends them, except the rounds that the pulse sends when they have work: when beat sent
those every one or two seconds, an idle beat and system worker took 60 ms of CPU time a second, now
37 ms. A round returns at once if the one before it still runs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from celery import Task, shared_task

from fleet import BrokerUnavailable
from jobs.calendars import changes
from jobs.catalog import builtin  # noqa: F401  registers its tasks
from jobs.core.conf import setting
from jobs.core.errors import FairshiftError, OptionError
from jobs.core.sql import alone
from jobs.definitions import inbox, periodic_tasks
from jobs.recurring import late_commits, misfire, second_intervals
from jobs.recurring.backfill import make_pending_runs
from jobs.recurring.pulse import make_ticks
from jobs.recurring.tick import run_tick
from jobs.rollouts import rounds as rollouts
from jobs.system import ends, hooks, partitions, promotion
from jobs.system.notices import delivery as deliveries
from jobs.system.notices import listening, mails
from jobs.system.notices import rounds as notices
from jobs.system.rescue import rescue_runs
from jobs.system.retention import rounds
from jobs.system.rollups import rolling
from jobs.system.sweep import sweep_hints
from jobs.system.system_task import GRACE_SECONDS, LONG_SOFT_LIMIT_SECONDS, SystemTask
from jobs.system.waiting import waiting_tasks

PROMOTE_SECONDS: Final = 0.5
"""How long a large wave that is released keeps others' due runs waiting."""

LAST_PRIORITY: Final = 9
"""That of all rounds: ticks, which have none, come first."""


@shared_task(name="fairshift.system.pulse", base=SystemTask, throws=(BrokerUnavailable,))
def pulse() -> list[int]:
    """Send the ticks of past slots, trigger jobs that were committed late, send rounds with work.

    A message that is lost is sent again by the pulses to come.
    """
    queue = setting("SYSTEM_QUEUE")
    try:
        ticks = make_ticks()
        for tick_id in ticks:
            tick.apply_async([tick_id], queue=queue, retry=False)
        late_commits.trigger_late_commits()
    finally:
        _send_rounds(queue)
    return ticks


def _send_rounds(queue: str) -> None:
    """Send the rounds that have work, unless a message of them waits."""
    waiting = None
    for round_, is_due in _IF_DUE.items():
        if is_due():
            waiting = waiting_tasks(queue) if waiting is None else waiting
            if round_.name not in waiting:
                # Not the expiry of the project's settings: workers' clocks would decide.
                round_.apply_async(queue=queue, priority=LAST_PRIORITY, expires=None, retry=False)


@shared_task(name="fairshift.system.tick", base=SystemTask, throws=(BrokerUnavailable,))
def tick(tick_id: int) -> int:
    """Trigger what is due in a tick."""
    return run_tick(tick_id)


@shared_task(name="fairshift.system.fire", base=SystemTask, throws=(BrokerUnavailable,))
def fire(job_id: int) -> int:
    """Trigger a job with an interval in seconds."""
    return second_intervals.trigger_second_interval(job_id)


@shared_task(name="fairshift.system.backfill", base=SystemTask)
@alone
def backfill() -> int:
    """Make the runs of backfills."""
    return make_pending_runs()


@shared_task(name="fairshift.system.settle", base=SystemTask)
@alone
def settle() -> dict[str, int]:
    """Record what ended pauses have missed, and sync PeriodicTasks that differ from their jobs."""
    synced = periodic_tasks.sync_periodic_tasks()
    return {"pauses": misfire.record_pauses(), "mended": len(synced)}


@shared_task(name="fairshift.system.promote", base=SystemTask)
@alone
def promote() -> int:
    """Release waves and queue due runs, and end those whose deadline has passed."""
    total, promoted_at = promotion.expire(), time.monotonic()
    while rollouts.advance(promotion.queue_due):
        if time.monotonic() - promoted_at > PROMOTE_SECONDS:
            total += promotion.promote()
            promoted_at = time.monotonic()
    return total + promotion.promote()


@shared_task(name="fairshift.system.rescue", base=SystemTask)
@alone
def rescue() -> int:
    """Take back the runs of lost workers."""
    return rescue_runs()


@shared_task(name="fairshift.system.sweep", base=SystemTask, throws=(BrokerUnavailable,))
@alone
def sweep() -> dict[str, int]:
    """Publish hints that may be missing in the broker."""
    return sweep_hints()


@shared_task(name="fairshift.system.make_partitions", base=SystemTask)
def make_partitions() -> list[str]:
    """Make the partitions of the coming days."""
    return partitions.make_partitions()


@shared_task(
    name="fairshift.system.extend_openings",
    base=SystemTask,
    soft_time_limit=LONG_SOFT_LIMIT_SECONDS,
    time_limit=LONG_SOFT_LIMIT_SECONDS + GRACE_SECONDS,
)
@alone
def extend_openings() -> int:
    """Make the openings of the coming weeks."""
    return changes.extend_openings()


@shared_task(name="fairshift.system.roll_up", base=SystemTask)
@alone
def roll_up() -> int:
    """Count what ended in the minutes since the last round."""
    return rolling.roll_up()


@shared_task(
    name="fairshift.system.remove_old_history",
    base=SystemTask,
    soft_time_limit=LONG_SOFT_LIMIT_SECONDS,
    time_limit=LONG_SOFT_LIMIT_SECONDS + GRACE_SECONDS,
)
def remove_old_history() -> dict[str, int] | None:
    """Remove history that is older than the settings and the owners say; archive it first."""
    done = rounds.remove_old_history(looks_again=False)
    ends.remove_silent()
    hooks.drop_gone()
    return done


@shared_task(
    name="fairshift.system.call_hooks",
    base=SystemTask,
    soft_time_limit=hooks.SOFT_LIMIT_SECONDS,
    time_limit=hooks.SOFT_LIMIT_SECONDS + 10,
)
@alone
def call_hooks() -> dict[str, int]:
    """Call the project's hooks for runs and submissions that have ended."""
    return hooks.call_hooks()


@shared_task(name="fairshift.system.notify", base=SystemTask)
@alone
def notify() -> dict[str, int]:
    """Store events for webhooks and mails, and send messages for those that are due."""
    return notices.notify()


# These two are plain messages of the fair queue of notices, whose workers they may keep waiting.
@shared_task(name="fairshift.system.deliver_webhook", base=SystemTask)
def deliver_webhook(delivery: int, is_probe: bool) -> str:
    """Try a delivery of a webhook once."""
    return deliveries.deliver(delivery, is_probe=is_probe)


@shared_task(name="fairshift.system.send_mail", base=SystemTask)
def send_mail(digest: int) -> str:
    """Send a mail about events."""
    return mails.send_mail(digest)


@shared_task(name="fairshift.system.read_inbox", base=SystemTask, throws=(BrokerUnavailable,))
@alone
def read_inbox() -> dict[str, int]:
    """Apply what other services have sent: upserts and deletions of jobs."""
    return inbox.read()


# These are read from the inbox in batches; other queues do not check a sender's owners.
@shared_task(name="fairshift.upsert_jobs", ignore_result=False, throws=(FairshiftError,))
def upsert_jobs(owner: str, jobs: list[dict[str, Any]]) -> None:  # noqa: ARG001  names of a call
    """Make an owner's jobs what these say; through the inbox only."""
    raise _not_the_inbox()


@shared_task(name="fairshift.delete_jobs", ignore_result=False, throws=(FairshiftError,))
def delete_jobs(owner: str, keys: list[str]) -> None:  # noqa: ARG001  names of a call
    """Delete an owner's jobs with these keys; through the inbox only."""
    raise _not_the_inbox()


_IF_DUE: Final[Mapping[Task, Callable[[], bool]]] = {
    notify: listening.is_any,
    call_hooks: hooks.is_round_due,
    # Last: it asks Redis, and an error there must not keep the others waiting.
    read_inbox: inbox.is_any_waiting,
}
"""The rounds that the pulse sends, and what says that they have work."""


def _not_the_inbox() -> FairshiftError:
    return OptionError(
        "queue", f"is not {setting('INBOX_QUEUE')!r}: no worker carries out this task"
    )
