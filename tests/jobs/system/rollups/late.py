"""Rollups that are written as rows, such as those with late starts."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from jobs.core.sql import now
from jobs.models import Owner, Rollup, RollupPosition

BUCKETS = {0.5: -7, 10.0: 25}
"""The buckets of waits of about so many seconds."""


def rolled(owner: Owner, at: datetime, outcome: str = "succeeded", **facts: Any) -> None:
    """Write the rollup of a minute: one run that neither waited nor ran, unless facts say so."""
    usual: dict[str, Any] = {"task": "tests.add", "error_type": "", "count": 1}
    for name in ("wait", "run"):
        usual |= {f"{name}_buckets": [], f"{name}_counts": []}
    seconds = {"wait_seconds": 0.0, "worker_seconds": 0.0}
    Rollup.objects.create(
        minute=at, owner_id=owner.pk, outcome=outcome, **{**usual, **seconds, **facts}
    )


def counted(owner: Owner, at: datetime, waits: Mapping[float, int]) -> None:
    """Write the rollup of a minute: how many starts waited about so long, a key of BUCKETS."""
    rolled(
        owner,
        at,
        count=sum(waits.values()),
        worker_seconds=1.0,
        wait_buckets=[BUCKETS[wait] for wait in waits],
        wait_counts=list(waits.values()),
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
