"""The PeriodicTasks that drive Fairshift itself, kept in django-celery-beat's tables."""

from __future__ import annotations

from typing import Any, Final

from jobs.core.conf import setting

BEHIND: Final = 9
"""The last of Redis's priority lists. Ticks are in the first: what is due does not wait behind what
has piled up while no system worker was there."""

# name of the PeriodicTask → (task, seconds between two runs)
PERIODIC: Final = {
    "fairshift: pulse": ("fairshift.system.pulse", 1),
    "fairshift: read the inbox": ("fairshift.system.read_inbox", 1),
    "fairshift: promote due runs": ("fairshift.system.promote", 1),
    "fairshift: make runs of backfills": ("fairshift.system.backfill", 5),
    "fairshift: record pauses": ("fairshift.system.settle", 5),
    "fairshift: rescue runs of lost workers": ("fairshift.system.rescue", 5),
    "fairshift: sweep for lost hints": ("fairshift.system.sweep", 5),
    "fairshift: make partitions": ("fairshift.system.make_partitions", 3_600),
    "fairshift: extend openings": ("fairshift.system.extend_openings", 3_600),
}


def keep_periodic_tasks(*, periodic_tasks: Any, intervals: Any) -> None:
    """Make the missing PeriodicTasks; what an operator changed stays as it is.

    Takes django-celery-beat's two model classes, so that a migration may hand in its own.
    """
    for name, (task, seconds) in PERIODIC.items():
        interval, _ = intervals.objects.get_or_create(every=seconds, period="seconds")
        periodic_tasks.objects.get_or_create(
            name=name,
            defaults={
                "task": task,
                "interval": interval,
                "queue": setting("SYSTEM_QUEUE"),
                "priority": BEHIND,
                "headers": "{}",
                "description": "Fairshift's own work. Disable it and nothing is lost, only late.",
            },
        )
