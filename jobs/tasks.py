"""The system's own Celery tasks: thin, one call each, on a queue and a worker of their own.

A round that meets the one before it still at work returns at once.
celery-beat sends them from the PeriodicTasks that `jobs/system_schedule.py` keeps.
"""

from __future__ import annotations

from celery import shared_task

from fleet import BrokerUnavailable
from jobs import partitions, promotion, reading_again, ticking
from jobs import pulse as pulsing
from jobs import rescue as rescuing
from jobs import sweep as sweeping
from jobs.builtin import http_request, management_command
from jobs.conf import setting
from jobs.database import alone

__all__ = [
    "http_request",
    "make_partitions",
    "management_command",
    "promote",
    "pulse",
    "rescue",
    "sweep",
    "tick",
]


@shared_task(name="fairshift.system.pulse", send_events=False, throws=(BrokerUnavailable,))
def pulse() -> list[int]:
    """Send the ticks of the slots that have passed, and read again what they could not see."""
    ticks = pulsing.pulse()
    for tick_id in ticks:
        # A message that is lost is sent again by the pulses to come.
        tick.apply_async([tick_id], queue=setting("SYSTEM_QUEUE"), retry=False)
    reading_again.read_again()
    return ticks


@shared_task(name="fairshift.system.tick", send_events=False, throws=(BrokerUnavailable,))
def tick(tick_id: int) -> int:
    """Trigger what is due in a tick."""
    return ticking.tick(tick_id)


@shared_task(name="fairshift.system.promote", send_events=False)
@alone
def promote() -> int:
    """Queue runs whose time has come, and end those whose deadline has passed."""
    return promotion.expire() + promotion.promote()


@shared_task(name="fairshift.system.rescue", send_events=False)
@alone
def rescue() -> int:
    """Take back the runs of workers that are gone."""
    return rescuing.rescue()


@shared_task(name="fairshift.system.sweep", send_events=False, throws=(BrokerUnavailable,))
@alone
def sweep() -> dict[str, int]:
    """Publish hints that may be missing in the broker."""
    return sweeping.sweep()


@shared_task(name="fairshift.system.make_partitions", send_events=False)
def make_partitions() -> list[str]:
    """Make the partitions of the coming days."""
    return partitions.make_partitions()
