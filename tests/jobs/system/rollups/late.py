"""Rollups with late starts."""

from collections.abc import Mapping
from datetime import datetime, timedelta

from jobs.core.sql import now
from jobs.models import Owner, Rollup, RollupPosition

BUCKETS = {0.5: -7, 10.0: 25}
"""The buckets of waits of about so many seconds."""


def counted(owner: Owner, at: datetime, waits: Mapping[float, int]) -> None:
    """Write the rollup of a minute: how many starts waited about so long, a key of BUCKETS."""
    Rollup.objects.create(
        minute=at,
        owner_id=owner.pk,
        task="tests.add",
        outcome="succeeded",
        error_type="",
        count=sum(waits.values()),
        wait_seconds=0.0,
        worker_seconds=1.0,
        wait_buckets=[BUCKETS[wait] for wait in waits],
        wait_counts=list(waits.values()),
        run_buckets=[],
        run_counts=[],
    )


def counted_until(at: datetime) -> None:
    """Let the statistics be final until a moment."""
    RollupPosition.objects.all().delete()
    RollupPosition.objects.create(final_until=at, counted_until=at)


def all_late(owner: Owner) -> None:
    """Let all starts of the last minutes have waited for 10 s."""
    until = now().replace(second=0, microsecond=0)
    counted(owner, until - timedelta(minutes=2), {10.0: 50})
    counted_until(until)
