"""The lease and the ledger of celery-beats, in PostgreSQL and by its clock."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Final

from django.db import DatabaseError, InterfaceError, connection

from fleet import one_line
from fleet.beat.leadership import LeaseLost, Sending
from jobs.core import log_events, sql

log = logging.getLogger(__name__)

BEAT = "beat"

_RELEASE = """
UPDATE jobs_leader SET until = clock_timestamp()
WHERE name = %s AND holder = %s AND until > clock_timestamp()
"""
# A disabled or deleted entry is not sent late when it is enabled again.
_DROP = """
DELETE FROM jobs_sententry s WHERE NOT EXISTS (
    SELECT FROM django_celery_beat_periodictask p WHERE p.name = s.name AND p.enabled)
"""
_UNSENT = "SELECT name, due_at, task_id FROM jobs_sententry WHERE sent_at IS NULL ORDER BY due_at"
_SENT = "UPDATE jobs_sententry SET sent_at = clock_timestamp() WHERE name = %s AND task_id = %s"


COMPARED_SECONDS: Final = 1.0
"""The longest statement by which clocks are compared: they are compared to within its time."""


class ServerClock:
    """PostgreSQL's time, continued between two readings by the monotonic clock."""

    def __init__(self) -> None:
        self._ahead = timedelta(seconds=time.time() - time.monotonic())
        self.machine_ahead_seconds: float | None = None
        """How far this machine's clock was ahead of PostgreSQL's last; None: not compared yet."""

    def read(self, now: datetime) -> None:
        """Set the time that PostgreSQL has just returned."""
        self._ahead = now - _monotonic()

    def compare(self, now: datetime, *, asked_at: float) -> None:
        """Compare this machine's clock with a time that PostgreSQL has just returned.

        The statement began at `asked_at`, a `time.monotonic()`.
        """
        if time.monotonic() - asked_at <= COMPARED_SECONDS:
            self.machine_ahead_seconds = time.time() - now.timestamp()

    def now(self) -> datetime:
        """Return the time, in UTC."""
        return _monotonic() + self._ahead


clock = ServerClock()


def acquire(name: str, holder: str, seconds: float) -> bool:
    """Take or renew a lease; say whether the holder has it. Sets the clock, too.

    The lease's row gets the difference of the clocks at the statement before.
    """
    ahead, asked_at = clock.machine_ahead_seconds, time.monotonic()
    facts = {"name": name, "holder": holder, "seconds": seconds, "ahead": ahead}
    [row] = sql.run("system/take_lease", facts)
    clock.read(row["now"])
    clock.compare(row["now"], asked_at=asked_at)
    return row["is_led"]


def release(name: str, holder: str) -> None:
    """Release a lease if the holder has it; if that fails, the lease expires."""
    problem: Exception | None = None
    for _ in range(2):
        try:
            sql.query(_RELEASE, [name, holder])
        except (DatabaseError, InterfaceError) as error:
            # A signal may have interrupted a statement: try once more on a new connection.
            connection.close()
            problem = error
        else:
            return
    log_events.BEAT_LEASE_NOT_RELEASED.log(log, error=one_line(problem))


class SentEntries:
    """The ledger: the last send of each entry."""

    def unsent(self) -> Iterable[Sending]:
        """Return the sends that may not have been published."""
        sql.query(_DROP)
        return [Sending(**row) for row in sql.query(_UNSENT)]

    def note(self, sending: Sending, *, holder: str) -> bool:
        """Record a send before its publish; raise LeaseLost if the holder has lost the lease."""
        [row] = sql.run(
            "system/record_send",
            {
                "leader": BEAT,
                "holder": holder,
                "name": sending.name,
                "due_at": sending.due_at,
                "task_id": sending.task_id,
            },
        )
        if not row["is_led"]:
            raise LeaseLost
        return row["is_noted"]

    def sent(self, sending: Sending) -> None:
        """Record that it is published."""
        sql.query(_SENT, [sending.name, sending.task_id])


def _monotonic() -> datetime:
    return datetime.fromtimestamp(0, UTC) + timedelta(seconds=time.monotonic())
