"""A schedule as a caller gives it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

FIELDS: Final = (
    *("interval_minutes", "interval_seconds", "cron", "once_at"),
    *("zone", "start_at", "end_at", "smooth"),
)
"""The fields that a caller gives, apart from the kind."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """When a job is due, with the fields of its row; `checked` knows which combinations are valid.

    `kind` is manual, once, interval, seconds or cron. An empty `zone` is UTC. For an interval in
    minutes, `phase` is the minute in the interval and `shard` the half-second in the minute, both
    from `place`. A smooth cron or once job is triggered at its shard, and due at the full minute.
    """

    kind: str
    interval_minutes: int | None = None
    interval_seconds: int | None = None
    cron: str = ""
    zone: str = ""
    once_at: datetime | None = None
    start_at: datetime | None = None
    end_at: datetime | None = None
    smooth: bool = False
    phase: int = 0
    shard: int = 0
