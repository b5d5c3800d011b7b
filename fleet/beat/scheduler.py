"""A scheduler for several celery-beats, of which one sends.

`LeaseScheduler` is mixed in before a scheduler of Celery's. The holder of the lease leads. A lease
counts from before the request for it, on a monotonic clock, and is checked before each send, so a
beat that was frozen sends nothing.

Each send has an id made from its entry and due time, and the schedule continues from the due time,
not from the time of the send. A ledger notes a send before and after its publish. If the second
note is missing, the message is published again with the same id, also by the next leader. A fair
queue drops the second message; a stock queue may get both.
"""

from __future__ import annotations

import logging
import os
import secrets
import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, Final

from celery.beat import ScheduleEntry, Scheduler, SchedulingError
from kombu.common import ignore_errors
from kombu.exceptions import OperationalError as BrokerError

from fleet import log_events
from fleet.alive import touch
from fleet.beat.due import due_after, last_due, send_id
from fleet.beat.leadership import Lead, LeaseLost, Sending
from fleet.crash_points import crash_point
from fleet.logs import one_line
from fleet.transport.password import logs_refused_password

log = logging.getLogger(__name__)

LEASE_SECONDS: Final = 6.0
RENEW_SECONDS: Final = 2.5
# Within this time before a lease ends, nothing is sent: a publish takes time.
MARGIN_SECONDS: Final = 1.0
RETRY_SECONDS: Final = 1.0
"""Seconds between two tries to reach a server."""


class LeaseScheduler(Scheduler):
    """A scheduler that sends only while it leads."""

    lead: ClassVar[Lead]
    outside_ledger: ClassVar[str] = ""
    """The prefix of tasks whose sends skip the ledger, and the log."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._holder = f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"
        self._led_until = 0.0
        self._ask_at = 0.0
        self._lost_at = 0.0  # when the broker was lost; 0 if it is not
        self._role = ""
        self._is_set_up = False
        self._is_in_round = False
        self._unsent: dict[str, tuple[Any, Sending, bool]] = {}  # entry, sending, is it noted
        super().__init__(*args, **kwargs)

    # --- for subclasses ------------------------------------------------------------------

    def reload_entries(self) -> None:
        """Read the schedule again: another beat has led before."""

    def is_in_ledger(self, entry: Any) -> bool:
        """Say whether the ledger has this entry's sends."""
        return not (self.outside_ledger and entry.task.startswith(self.outside_ledger))

    # --- leading -------------------------------------------------------------------------

    @property
    def is_leading(self) -> bool:
        """Whether the lease lasts long enough for a send."""
        return time.monotonic() < self._led_until - MARGIN_SECONDS

    def forget(self) -> None:
        """Stop leading until the lease is acquired and the schedule read again."""
        self._led_until = 0.0
        self._unsent.clear()
        self._heap = None

    def _ask(self) -> None:
        """Take or renew the lease."""
        asked_at = time.monotonic()
        self._ask_at = asked_at + RENEW_SECONDS
        if not self.lead.acquire(self.lead.name, self._holder, LEASE_SECONDS):
            self.forget()
            self._log_role("stands by: another beat leads")
            return
        # The old lease has ended: another beat may have led meanwhile.
        if time.monotonic() >= self._led_until:
            self.forget()
            self._take_over()
            # Reading may have taken long: renew.
            asked_at = time.monotonic()
            if not self.lead.acquire(self.lead.name, self._holder, LEASE_SECONDS):
                raise LeaseLost
            self._log_role("leads")
        self._led_until = asked_at + LEASE_SECONDS

    def _take_over(self) -> None:
        self.reload_entries()
        if not self._is_set_up:
            super().setup_schedule()
            self._is_set_up = True
        schedule = self.schedule
        for sending in self.lead.ledger.unsent():
            if entry := schedule.get(sending.name):
                self._unsent[sending.name] = (entry, sending, True)

    def _step_down(self) -> None:
        """Give the lease up at once."""
        self.forget()
        self._lost_at = 0.0
        self.lead.release(self.lead.name, self._holder)

    def _log_role(self, role: str) -> None:
        if role != self._role:
            log_events.BEAT_ROLE.log(log, holder=self._holder, role=role)
            self._role = role

    # --- the round -----------------------------------------------------------------------

    def tick(self, *args: Any, **kwargs: Any) -> float:
        """Send what is due, if we lead; return the seconds until the next round."""
        self._is_in_round = True
        touch()
        try:
            if time.monotonic() >= self._ask_at:
                self._ask()
            seconds = RENEW_SECONDS
            if self.is_leading:
                self._send_again()
                seconds = super().tick(*args, **kwargs)
            return max(0.0, min(seconds, self._ask_at - time.monotonic()))
        except LeaseLost:
            self.forget()
            self._ask_at = 0.0
            return 0.0
        except (BrokerError, OSError) as error:
            if not logs_refused_password(log, error):
                log_events.BEAT_WAITS_FOR_BROKER.log(log, error=one_line(error))
            self._drop_connection()
            # An interrupted round may have lost an entry from the heap.
            self._heap = None
            self._lost_at = self._lost_at or time.monotonic()
            if time.monotonic() - self._lost_at > LEASE_SECONDS:
                # It may be unreachable for this beat only: let another one try.
                self._step_down()
                self._ask_at = time.monotonic() + LEASE_SECONDS
            return RETRY_SECONDS
        finally:
            self._is_in_round = False

    def adjust(self, n: float, drift: float = 0.0) -> float:
        """Return a time without Celery's head start, which makes rounds start early and spin."""
        return super().adjust(n, drift=drift)

    def is_due(self, entry: Any) -> tuple[bool, float]:
        """Say whether an entry is due, and in how many seconds to check it again."""
        is_due, seconds = super().is_due(entry)
        if is_due:
            now = entry.default_now()
            due = last_due(entry.schedule, after=entry.last_run_at, now=now)
            following = (due_after(entry.schedule, due) - now).total_seconds()
            seconds = following if following > 0 else seconds
        return is_due, seconds

    def reserve(self, entry: Any) -> Any:
        """Advance an entry to its due time, and remember its send."""
        due_at = last_due(entry.schedule, after=entry.last_run_at, now=entry.default_now())
        moved = super().reserve(entry)
        moved.last_run_at = due_at
        sending = Sending(entry.name, due_at, send_id(entry.name, due_at))
        self._unsent[entry.name] = (entry, sending, False)
        return moved

    def apply_entry(self, entry: Any, producer: Any = None) -> None:
        """Send what `reserve` has remembered."""
        self._send(*self._unsent[entry.name], producer=producer)

    def _send_again(self) -> None:
        """Send what an earlier round or leader could not."""
        for remembered in list(self._unsent.values()):
            self._send(*remembered, producer=self.producer)

    def _send(self, entry: Any, sending: Sending, is_noted: bool, *, producer: Any) -> None:
        self._must_lead()
        in_ledger = self.is_in_ledger(entry)
        if in_ledger and not is_noted:
            if not self.lead.ledger.note(sending, holder=self._holder):
                del self._unsent[sending.name]
                return
            self._unsent[sending.name] = (entry, sending, True)
            crash_point("beat.after_note")
            self._must_lead()
        if in_ledger:
            log_events.BEAT_SENDS.log(log, entry=entry.name, task=entry.task)
        with deferred_signals():
            if self._publish(entry, sending, producer) and in_ledger:
                crash_point("beat.after_publish")
                self.lead.ledger.sent(sending)
        del self._unsent[sending.name]

    def _must_lead(self) -> None:
        if not self.is_leading:
            raise LeaseLost

    def _publish(self, entry: Any, sending: Sending, producer: Any) -> bool:
        """Publish a send under its id; False if its entry is invalid. Raises BrokerError."""
        call = ScheduleEntry(
            name=entry.name,
            task=entry.task,
            args=entry.args,
            kwargs=entry.kwargs,
            options={
                **entry.options,
                "task_id": sending.task_id,
                "message_id": sending.task_id,
                "retry": False,
            },
            app=self.app,
        )
        try:
            self.apply_async(call, producer=producer, advance=False)
        except SchedulingError as error:
            if isinstance(error.__context__, BrokerError | OSError):
                raise error.__context__ from error
            # As in Celery: an entry that cannot be sent must not delay the others.
            log_events.BEAT_ENTRY_INVALID.log(log, entry=entry.name, exc_info=True)
            return False
        self._lost_at = 0.0
        return True

    # --- the broker, and the end -----------------------------------------------------------

    def _ensure_connected(self) -> Any:
        """Connect to the broker with one try, so that a round does not hang."""
        return self.connection.ensure_connection(max_retries=1, interval_start=0.1)

    def _drop_connection(self) -> None:
        self.__dict__.pop("producer", None)
        connection = self.__dict__.pop("connection", None)
        if connection is not None:
            ignore_errors(connection, connection.release)

    def setup_schedule(self) -> None:
        """Do nothing: the schedule is set up when this beat leads for the first time."""

    def close(self) -> None:
        """Give up the lease at once."""
        if self._is_in_round:
            # In a signal handler, maybe during a statement. The round ends now, and Celery calls
            # this again after it.
            return
        try:
            super().close()
        finally:
            if self._led_until:
                self._step_down()


@contextmanager
def deferred_signals() -> Iterator[None]:
    """Defer SIGTERM and SIGINT until the end of the block; do nothing outside the main thread.

    Celery's handlers raise wherever the process is, also between a publish and its note.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    before = {
        number: signal.signal(number, lambda number, _frame: came.append(number))
        for number in (signal.SIGTERM, signal.SIGINT)
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if came:
            signal.raise_signal(came[0])
