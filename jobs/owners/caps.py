"""Caps of an owner's waiting runs and jobs: checked before a request stores more.

Counting is costly, so a count is kept for 5 seconds, plus the rows that this process adds. Other
processes may add rows in that time, so an owner can exceed a cap for a few seconds. Counting the
rows of one owner delays requests of that owner, and of no other.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from django.db.models import QuerySet

from jobs.core.conf import setting
from jobs.core.counting import within
from jobs.core.errors import LimitExceeded
from jobs.core.states import WAITING
from jobs.models import Job, Run

KNOWN_SECONDS: Final = 5.0
COUNT_MILLISECONDS: Final = 250
RETRY_AFTER_SECONDS: Final = 5


@dataclass(slots=True)
class _Count:
    """The number of an owner's rows, and the monotonic time after which it is counted again."""

    rows: int = 0
    until: float = 0.0
    lock: threading.Lock = field(default_factory=threading.Lock)


_counts: Final[dict[tuple[str, int], _Count]] = {}


def refuse_more_runs(owner_id: int, *, adding: int) -> None:
    """Raise LimitExceeded if an owner would have too many waiting runs."""
    _refuse(
        "waiting_runs",
        key="API_OWNER_WAITING_RUNS",
        owner_id=owner_id,
        rows=lambda: Run.objects.filter(owner_id=owner_id, state__in=sorted(WAITING)),
        adding=adding,
    )


def refuse_more_jobs(owner_id: int, *, adding: int) -> None:
    """Raise LimitExceeded if an owner would have too many jobs."""
    _refuse(
        "jobs",
        key="API_OWNER_JOBS",
        owner_id=owner_id,
        rows=lambda: Job.objects.filter(owner_id=owner_id),
        adding=adding,
    )


def _refuse(
    name: str, *, key: str, owner_id: int, rows: Callable[[], QuerySet[Any]], adding: int
) -> None:
    limit: int = setting(key)

    def ask() -> int:
        # A callable, because the query is rarely needed: usually the count is known.
        return rows().order_by().values("pk")[: limit + 1].count()

    counted = (name, owner_id)
    count = _counts.get(counted) or _counts.setdefault(counted, _Count())
    with count.lock:
        _count_again(count, ask)
        if count.rows + adding > limit:
            # The next request counts again: rows may have been deleted meanwhile.
            count.until = 0.0
            raise LimitExceeded(
                name,
                f"this owner may have {limit:,} {name.replace('_', ' ')}",
                limit,
                RETRY_AFTER_SECONDS,
            )
        count.rows += adding


def _count_again(count: _Count, ask: Callable[[], int]) -> None:
    """Count the rows if the last count is too old; after a timeout the old count stays."""
    began = time.monotonic()
    if began < count.until:
        return
    found = within(COUNT_MILLISECONDS, ask)
    if found is not None:
        count.rows = found
    count.until = began + KNOWN_SECONDS
