"""celery-beat's scheduler of an installation: django-celery-beat's, which outlives its servers.

Point `CELERY_BEAT_SCHEDULER` to `jobs.beat:Scheduler`.
"""

from __future__ import annotations

import logging
from datetime import datetime
from typing import Any, Final

from django.db import InterfaceError, OperationalError, connection
from django_celery_beat.schedulers import DatabaseScheduler, ModelEntry
from kombu.exceptions import OperationalError as BrokerError

log = logging.getLogger(__name__)

AGAIN_SECONDS: Final = 1.0


class _Away(BaseException):
    """PostgreSQL is away: passes the `except Exception` around each entry that is installed."""


class Entry(ModelEntry):
    """A PeriodicTask; installing one fails when PostgreSQL is away, where stock goes on without."""

    @classmethod
    def from_entry(cls, name: str, app: Any = None, **entry: Any) -> Entry:
        try:
            return super().from_entry(name, app=app, **entry)
        except (OperationalError, InterfaceError) as error:
            raise _Away(error) from error


class Scheduler(DatabaseScheduler):
    """Reads PeriodicTasks and sends them; while a server of its is away, it waits and says so."""

    Entry = Entry
    _is_set_up = False
    _last_timestamp: datetime | None = None

    def setup_schedule(self) -> None:
        """Leave the first reading to the first tick: no process may die of a database's boot."""

    def tick(self, *args: Any, **kwargs: Any) -> float:
        """Run one round; return the seconds until the next."""
        try:
            if not self._is_set_up:
                super().setup_schedule()
                self._is_set_up = True
            return super().tick(*args, **kwargs)
        except (OperationalError, InterfaceError, _Away) as error:
            log.warning("beat: waits for PostgreSQL: %s", _line(error))
            connection.close()
        except (BrokerError, OSError) as error:
            log.warning("beat: waits for the broker: %s", _line(error))
        self._read_again()
        return AGAIN_SECONDS

    def schedule_changed(self) -> bool:
        """Say whether an entry was changed. Fails as any statement does; stock logs a trace."""
        before, self._last_timestamp = self._last_timestamp, self.Changes.last_change()
        return before != self._last_timestamp

    def all_as_schedule(self) -> dict[str, Any]:
        # Before the entries: a change between the two readings is read again, not lost.
        self._last_timestamp = self.Changes.last_change()
        return super().all_as_schedule()

    def _read_again(self) -> None:
        # A round that broke off may have lost an entry from the heap, or a change's time stamp.
        self._initial_read = True
        self._heap = None

    def _ensure_connected(self) -> Any:
        """Return the connection to the broker after one try: a round must not hang in it."""
        return self.connection.ensure_connection(max_retries=1, interval_start=0.1)


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())
