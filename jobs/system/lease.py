"""The lease and the ledger of celery-beats, in PostgreSQL and on its clock."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from django.db import DatabaseError, InterfaceError, connection

from fleet.beat.leadership import LeaseLost, Sending
from jobs.core import sql

log = logging.getLogger(__name__)

BEAT = "beat"

_RELEASE = """
UPDATE jobs_leader SET until = clock_timestamp()
WHERE name = %s AND holder = %s AND until > clock_timestamp()
"""
# An entry that is off or gone is not sent late when it is on again.
_DROP = """
DELETE FROM jobs_sententry s WHERE NOT EXISTS (
    SELECT FROM django_celery_beat_periodictask p WHERE p.name = s.name AND p.enabled)
"""
_UNSENT = "SELECT name, due_at, task_id FROM jobs_sententry WHERE sent_at IS NULL ORDER BY due_at"
_SENT = "UPDATE jobs_sententry SET sent_at = clock_timestamp() WHERE name = %s AND task_id = %s"


class ServerClock:
    """PostgreSQL's time, carried on between two readings by a clock that nobody sets."""

    def __init__(self) -> None:
        self._ahead = timedelta(seconds=time.time() - time.monotonic())

    def read(self, now: datetime) -> None:
        """Take over what PostgreSQL has just said."""
        self._ahead = now - _monotonic()

    def now(self) -> datetime:
        """Return the time, in UTC."""
        return _monotonic() + self._ahead


clock = ServerClock()


def acquire(name: str, holder: str, seconds: float) -> bool:
    """Take or renew a lease; say whether it is the holder's now. Reads the clock, too."""
    [row] = sql.run("system/take_lease", {"name": name, "holder": holder, "seconds": seconds})
    clock.read(row["now"])
    return row["is_led"]


def release(name: str, holder: str) -> None:
    """Give a lease up at once, if it is this holder's; what cannot be given up ends by itself."""
    problem: Exception | None = None
    for _ in range(2):
        try:
            sql.query(_RELEASE, [name, holder])
        except (DatabaseError, InterfaceError) as error:
            # A signal may have left the connection amid a statement: once more on a new one.
            connection.close()
            problem = error
        else:
            return
    log.warning("beat: the lease is not given up: %s", " ".join(str(problem).split()))


class SentEntries:
    """The ledger of sends: the last one of each entry."""

    def unsent(self) -> Iterable[Sending]:
        """Return what was noted and is not known to be published."""
        sql.query(_DROP)
        return [Sending(**row) for row in sql.query(_UNSENT)]

    def note(self, sending: Sending, *, holder: str) -> bool:
        """Note a send before its publish; raises LeaseLost when the lease is another's."""
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
        """Note that it is published."""
        sql.query(_SENT, [sending.name, sending.task_id])


def _monotonic() -> datetime:
    return datetime.fromtimestamp(0, UTC) + timedelta(seconds=time.monotonic())
