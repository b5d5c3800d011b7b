"""The state of an installation: beat, the pulse, the workers, the outbox. A few rows by index."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from django.db.models.functions import Now

from jobs.core.conf import plain_queues, setting
from jobs.core.counting import within
from jobs.core.sql import now
from jobs.core.states import State
from jobs.models import Cursor, Leader, Outbox, RollupPosition, Worker
from jobs.models.run import RunQuerySet
from jobs.runs.dispatch import owners
from jobs.system import periodic
from jobs.system.lease import BEAT
from jobs.system.pinning import Pin, pins
from jobs.system.rollups import reads

CLOCK_SECONDS: Final = 2.0
"""Difference of a machine's clock from PostgreSQL's that is reported."""
SILENT: Final = timedelta(seconds=30)
"""Time without a pulse after which one is missed; without an enabled job it comes every 8 s."""
LOST_FOR: Final = timedelta(hours=1)
"""How long a worker whose heartbeat stopped is reported; then it is history."""
MILLISECONDS: Final = 100
"""Most time to look for waiting runs of one queue."""
NAMED: Final = 3
"""Most workers that are named in one problem."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemState:
    """What runs, and since when what is missing is missing. Times are PostgreSQL's."""

    at: datetime
    is_beat_leading: bool
    pulsed_at: datetime | None
    """The time of the last pulse; None: there was none."""
    worker_count: int
    """Workers that are alive."""
    slots: int
    """Slots for runs: those of workers that take from another queue than the system's."""
    queues: frozenset[str]
    """Queues with a worker that is alive."""
    without_redis: tuple[str, ...] = ()
    """Nodes with a heartbeat that cannot use Redis. A name is empty if it may not be seen."""
    lost: tuple[str, ...] = ()
    """Nodes whose heartbeat stopped within LOST_FOR, and that have not come back."""
    unpublished_since: datetime | None = None
    """The time of the oldest hints in the outbox; None: it is empty."""
    counted_until: datetime | None = None
    """The end of the last minute of the statistics; None: none was counted yet."""
    beat_host: str = ""
    """The machine of the beat that leads."""
    beat_ahead_seconds: float | None = None
    """How far that machine's clock is ahead of PostgreSQL's; None: not known."""
    missing_rounds: tuple[str, ...] = ()
    """Names of Fairshift's PeriodicTasks that are missing."""
    pins: Mapping[str, Pin] = field(default_factory=dict)
    """Old transactions and slots that keep dead rows, by kind."""

    @property
    def pulse_age(self) -> timedelta | None:
        return None if self.pulsed_at is None else self.at - self.pulsed_at

    @property
    def is_clock_wrong(self) -> bool:
        """Whether the clock of beat's machine differs from PostgreSQL's."""
        return abs(self.beat_ahead_seconds or 0.0) > CLOCK_SECONDS

    @property
    def is_silent(self) -> bool:
        """Whether the pulse is missing."""
        return self.pulse_age is None or self.pulse_age > SILENT

    @property
    def statistics_lag(self) -> timedelta:
        """How long ago the first minute ended that is not counted."""
        until = self.counted_until
        return timedelta() if until is None else reads.lag(until, at=self.at)


def system_state() -> SystemState:
    """Return the state. Call it with the barrier lifted: none of these rows has an owner."""
    at, plain = now(), plain_queues()
    alive = list(Worker.objects.alive().values_list("hostname", "slots", "queues"))
    beat = Leader.objects.filter(name=BEAT).first()
    cursor = Cursor.objects.order_by("pk").first()
    oldest = Outbox.objects.order_by("pk").first()
    position = RollupPosition.objects.first()
    leading = beat if beat is not None and beat.until > at else None
    return SystemState(
        at=at,
        is_beat_leading=leading is not None,
        pulsed_at=None if cursor is None else cursor.beat_at,
        worker_count=len(alive),
        slots=sum(slots for _name, slots, queues in alive if set(queues) - plain),
        queues=frozenset(queue for _name, _slots, queues in alive for queue in queues),
        without_redis=tuple(
            Worker.objects.without_redis().order_by("hostname").values_list("hostname", flat=True)
        ),
        lost=_lost(),
        unpublished_since=None if oldest is None else oldest.created_at,
        counted_until=None if position is None else position.counted_until,
        beat_host="" if leading is None else leading.host,
        beat_ahead_seconds=None if leading is None else leading.clock_ahead_seconds,
        missing_rounds=tuple(periodic.missing()),
        pins=pins(),
    )


def unserved_queues(state: SystemState, runs: RunQuerySet) -> list[str]:
    """Return the fair queues in which some of these runs wait, and without a living worker."""
    waiting = runs.filter(state=State.QUEUED, blocked_by="")
    return [
        queue
        for queue in owners().queues
        if queue not in state.queues and within(MILLISECONDS, waiting.filter(queue=queue).exists)
    ]


def _lost() -> tuple[str, ...]:
    lease = timedelta(seconds=setting("LEASE_SECONDS"))
    silent = Worker.objects.filter(
        stopped_at=None, heartbeat_at__lte=Now() - lease, heartbeat_at__gt=Now() - lease - LOST_FOR
    ).order_by("-heartbeat_at")
    names = dict.fromkeys(silent.values_list("hostname", flat=True)[:50])
    beating = set(Worker.objects.beating().values_list("hostname", flat=True)) if names else ()
    return tuple(name for name in names if name not in beating)[:NAMED]
