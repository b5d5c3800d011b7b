"""celery-beat's scheduler of an installation: any number of beats run, and one of them sends.

Set `CELERY_BEAT_SCHEDULER` to `jobs.system.beat:Scheduler`. It extends django-celery-beat's, and
differs where that loses or repeats sends:

- a beat waits for PostgreSQL and Redis if they are unavailable, also at its boot;
- one leads (`fleet/beat/scheduler.py`), by PostgreSQL's clock; entries are due by that clock, too;
- an entry whose publish failed is sent again; one that was due while no beat ran is sent once;
- intervals do not drift: they continue from the due time;
- entries of Fairshift that are missing are made (`jobs/system/periodic.py`).

The system's own tasks skip the ledger: most are sent every second, it would cost two statements a
send, and each of them may run twice. Their last runs are written every few minutes, as stock does.
"""

from __future__ import annotations

import logging
import time
from datetime import datetime, timedelta
from typing import Any, Final

from celery.schedules import crontab
from celery.schedules import schedule as interval
from django.db import DatabaseError, InterfaceError, connection
from django_celery_beat.schedulers import DatabaseScheduler, ModelEntry

from fleet import BrokerUnavailable, one_line
from fleet.beat.leadership import Lead, Sending
from fleet.beat.scheduler import RENEW_SECONDS, RETRY_SECONDS, LeaseScheduler
from jobs.catalog.registry import SYSTEM_TASKS
from jobs.core import log_events, sql
from jobs.core.conf import setting
from jobs.runs.dispatch import broker
from jobs.system import lease, periodic
from jobs.system.waiting import waiting_tasks

log = logging.getLogger(__name__)

TICK: Final = timedelta(microseconds=1)
PULSE: Final = "fairshift.system.pulse"

MAKE_SECONDS: Final = 60.0
"""Seconds between two looks for entries of Fairshift that are missing."""
PILE: Final = 5_000
"""Most messages that may wait for the system's workers; the first of a kind does all the work."""

ROUNDS: Final = frozenset(map(periodic.task_of, periodic.EVERY))
"""Tasks that do all pending work in one round: at most one message of each waits."""

_NOTE_RUN: Final = """
UPDATE django_celery_beat_periodictask SET last_run_at = %s, total_run_count = %s
WHERE id = (SELECT id FROM django_celery_beat_periodictask WHERE id = %s AND enabled
            FOR UPDATE SKIP LOCKED)
RETURNING id
"""


class _Away(BaseException):
    """PostgreSQL is unavailable. Not an Exception: stock catches those for each entry."""


class Entry(ModelEntry):
    """A PeriodicTask, on PostgreSQL's clock."""

    last_run_at: datetime

    def __init__(self, model: Any, app: Any = None) -> None:
        try:
            super().__init__(model, app=app)
            self.schedule.nowfun = lease.clock.now
        except (DatabaseError, InterfaceError):
            raise
        except Exception as error:
            # Stock would end. A ValueError leaves out this entry only.
            log_events.BEAT_ENTRY_BROKEN.log(log, entry=model.name, exc_info=True)
            raise ValueError(model.name) from error
        if model.start_time and self.last_run_at < model.start_time:
            self.last_run_at = self._before(model.start_time)
        if model.task == PULSE:
            # On the second, so that jobs due at the start of a minute are not late by a fraction.
            self.last_run_at = self.last_run_at.replace(microsecond=0)

    def _before(self, start: datetime) -> datetime:
        """Return a last run with which the first is due at the start; stock's is 30 years ago."""
        if isinstance(self.schedule, interval):
            return start - self.schedule.run_every
        return max(start - TICK, self.model.date_changed)

    def _default_now(self) -> datetime:
        return lease.clock.now()

    def save(self) -> bool:
        """Write only the last run; say whether it was written. Does not wait for a locked row."""
        facts = [self.model.last_run_at, self.model.total_run_count, self.model.pk]
        return bool(sql.query(_NOTE_RUN, facts))

    @classmethod
    def from_entry(cls, name: str, app: Any = None, **entry: Any) -> Entry:
        try:
            return super().from_entry(name, app=app, **entry)
        except (DatabaseError, InterfaceError) as error:
            raise _Away(error) from error


class Scheduler(LeaseScheduler, DatabaseScheduler):
    """Reads PeriodicTasks and sends them while it leads; waits for servers that are away."""

    Entry = Entry
    lead = Lead(acquire=lease.acquire, release=lease.release, ledger=lease.SentEntries())
    outside_ledger = SYSTEM_TASKS
    _schedule: dict[str, Any] | None = None
    _last_timestamp: datetime | None = None
    _look_at = 0.0
    _make_at = 0.0
    _was_full = False

    def tick(self, *args: Any, **kwargs: Any) -> float:
        """Run one round; return the seconds until the next."""
        try:
            self._make_missing()
            return super().tick(*args, **kwargs)
        except (DatabaseError, InterfaceError, _Away) as error:
            log_events.BEAT_WAITS_FOR_DATABASE.log(log, error=one_line(error))
            connection.close()
            self.forget()
            self._ask_at = 0.0
            return RETRY_SECONDS

    def _make_missing(self) -> None:
        """Make Fairshift's entries that are missing: at the start, then once a minute."""
        if time.monotonic() < self._make_at:
            return
        if made := periodic.make_missing():
            log_events.BEAT_ENTRIES_MADE.log(log, entries=", ".join(made))
            self._look_at = 0.0
        self._make_at = time.monotonic() + MAKE_SECONDS

    def reserve(self, entry: Any) -> Any:
        moved = super().reserve(entry)
        moved.model.last_run_at = moved.last_run_at
        # Not the property `schedule`, which may read all entries again.
        if self._schedule is not None:
            self._schedule[moved.name] = moved
        if self.is_in_ledger(moved):
            # The ledger has updated the row.
            self._dirty.discard(moved.name)
        return moved

    def _publish(self, entry: Any, sending: Sending, producer: Any) -> bool:
        """Publish a send, unless a message of this round waits, or the system's queue is full."""
        waiting = None if self.is_in_ledger(entry) else self._backlog(entry.options.get("queue"))
        if waiting is not None and self._is_full(entry.options["queue"], waiting):
            return False
        if entry.task in ROUNDS:
            if waiting and entry.task in waiting_tasks(entry.options["queue"]):
                return False
            # Not the one of its row or of the project's settings: workers' clocks would decide.
            entry.options["expires"] = None
        return super()._publish(entry, sending, producer)

    def _backlog(self, queue: str | None) -> int | None:
        """Return the number of waiting messages; None without a queue, or if Redis is unavailable.

        If Redis is unavailable, the publish that follows fails, and logs it.
        """
        timeout = setting("PUBLISH_TIMEOUT_SECONDS")
        try:
            return broker().backlog(queue, timeout=timeout) if queue else None
        except BrokerUnavailable:
            return None

    def _is_full(self, queue: str, waiting: int) -> bool:
        """Say whether this many waiting messages are too many; log when a queue becomes full."""
        is_full = waiting >= PILE
        if is_full and not self._was_full:
            log_events.BEAT_INBOX_FULL.log(log, count=waiting, queue=queue)
        self._was_full = is_full
        return is_full

    def reload_entries(self) -> None:
        self._dirty.clear()
        self._schedule = None
        self._initial_read = True

    def schedule_changed(self) -> bool:
        """Say whether an entry was changed; raise DatabaseError, which stock only logs."""
        if time.monotonic() < self._look_at:
            return False
        self._look_at = time.monotonic() + RENEW_SECONDS
        before, self._last_timestamp = self._last_timestamp, self.Changes.last_change()
        return before != self._last_timestamp

    def enabled_models_qs(self) -> Any:
        """Return all entries: stock leaves out crontabs that are not due within two hours.

        A missed one would then be sent when its hour is near the next time, hours early.
        """
        return self.Model.objects.enabled()

    def all_as_schedule(self) -> dict[str, Any]:
        # Before the entries, so that a change between the two readings is not lost.
        self._last_timestamp = self.Changes.last_change()
        before: dict[str, Any] = self._schedule or {}
        entries = super().all_as_schedule()
        for name, entry in entries.items():
            if isinstance(entry.schedule, crontab) and name in before:
                self._heed_change(entry, before[name])
        return entries

    def _heed_change(self, entry: Any, before: Any) -> None:
        """Apply a changed crontab from now on: its earlier times are not missed."""
        if entry.schedule != before.schedule:
            entry.last_run_at = entry.model.last_run_at = lease.clock.now()
            entry.save()

    def sync(self) -> None:
        """Write the last runs of entries that are not in the ledger."""
        if not self.is_leading:
            return
        try:
            for name in list(self._dirty):
                entry = (self._schedule or {}).get(name)
                if entry is None or entry.save():
                    self._dirty.discard(name)
        except (DatabaseError, InterfaceError) as error:
            log_events.BEAT_WRITES_LATER.log(log, error=one_line(error))
            connection.close()
