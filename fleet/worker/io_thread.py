"""The thread between a worker's event loop and the application with its database and broker.

The loop leaves requests and reports here and never waits. The thread takes a batch, records
reports, then admits requests, each in one statement, and posts the answers to the loop. Reports
that no caller waits for are batched for up to 50 ms; an urgent one flushes the batch. If the
database does not answer, the batch is tried again. Hints of runs without a row go to the broker in
the same way.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import islice
from typing import Any, Final
from uuid import UUID

from fleet import log_events
from fleet.contract import (
    BUSY_ROW,
    Admission,
    AdmissionRequest,
    Application,
    BrokerUnavailable,
    Hint,
    Kind,
    Refusal,
    Report,
)
from fleet.crash_points import crash_point
from fleet.worker.requests import Answer, Asked, Requests

logger = logging.getLogger(__name__)

Then = Callable[[str | None], None]

Reports = list[tuple[Report, Then | None]]
Hints = list[tuple[Hint, Callable[[], None]]]

RETRY_SECONDS: Final = 1.0
# Most tasks end before their start is due, and both moves are then one write.
START_SECONDS: Final = 0.25
END_SECONDS: Final = 0.05
REQUEST_SECONDS: Final = 0.02
BATCH: Final = 100
ADMIT_AT_MOST: Final = 128


class IOThread:
    """Admits and records for one worker node, in a thread that `watch` replaces if it has died."""

    def __init__(self, application: Application, node: UUID, post: Callable[..., None]) -> None:
        self._thread: threading.Thread | None = None
        self._application = application
        self._node = node
        self._post = post
        self._ready = threading.Condition()
        self._requests = Requests()
        self._reports: Reports = []
        self._starts: dict[tuple[str, int], float] = {}
        """When each attempt began whose start is not recorded yet, the oldest first."""
        self._hints: Hints = []
        self._in_hand: tuple[Reports, Hints] = [], []
        """What the thread has taken and has not done yet."""
        self._due_at = math.inf
        self._idle = True
        self._postponed = 0
        self._is_to_prime = False
        self._may_prime_at = 0.0
        self._may_publish_at = 0.0
        self._stopping = False

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, name="fairshift-io", daemon=True)
        self._thread.start()

    def join(self, timeout: float) -> None:
        if self._thread is not None:
            self._thread.join(timeout)

    def is_alive(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def watch(self) -> None:
        """Replace the thread if it has died; give back the hints that wait, repeat the rest."""
        if self._thread is None or self.is_alive() or self._stopping:
            return
        count = self.refuse_requests()
        with self._ready:
            reports, hints = self._in_hand
            self._reports[:0], self._hints[:0] = reports, hints
            self._in_hand = [], []
            self._wake_within(0)
        log_events.IO_THREAD_REPLACED.log(logger, count=count)
        self.start()

    def request_admission(
        self, request: AdmissionRequest, answer: Answer, *, is_urgent: bool = True
    ) -> bool:
        """Have a hint admitted; False if a request for the same run is pending.

        `answer` gets the verdict and the `time.monotonic()` at which the application was asked.
        """
        with self._ready:
            if not self._requests.add(request, answer):
                return False
            self._wake_within(0 if is_urgent or len(self._requests) >= BATCH else REQUEST_SECONDS)
            return True

    @property
    def longest_wait(self) -> float:
        """How long (seconds) the oldest request has waited; 0 without one."""
        with self._ready:
            return self._requests.longest_wait

    def refuse_requests(self) -> int:
        """Answer BUSY to all waiting requests; return to how many.

        A statement that is under way may still admit some: these runs are handed back.
        """
        with self._ready:
            refused = self._requests.refuse()
        now = time.monotonic()
        self._post(*(partial(asked.answer, Refusal.BUSY, now) for asked in refused))
        return len(refused)

    def report(self, report: Report, then: Then | None = None, *, is_urgent: bool = True) -> None:
        """Have a report recorded; `then` gets the run's state, or None if the token was old."""
        with self._ready:
            began_at = self._starts.pop((report.run_id, report.token), None)
            if began_at is not None and report.started_at is None:
                report = report._replace(started_at=began_at)
            self._reports.append((report, then))
            self._wake_within(0 if is_urgent or len(self._reports) >= BATCH else END_SECONDS)

    def note_start(self, run_id: str, token: int, at: float) -> None:
        """Note when an attempt began: recorded with its end, or after `START_SECONDS`."""
        with self._ready:
            self._starts[run_id, token] = at
            self._wake_within(START_SECONDS)

    def publish(self, hint: Hint, then: Callable[[], None]) -> None:
        """Have a hint published; `then` is called after that."""
        with self._ready:
            self._hints.append((hint, then))
            self._wake_within(0)

    def prime(self) -> None:
        """Have emptied queues filled again, at most once a second.

        The caller repeats this with every take until it is done.
        """
        with self._ready:
            if not self._is_to_prime and time.monotonic() >= self._may_prime_at:
                self._is_to_prime = True
                self._wake_within(0)

    def _wake_within(self, seconds: float) -> None:
        """Have the thread handle everything within this time."""
        due_at = time.monotonic() + seconds
        if due_at < self._due_at:
            self._due_at = due_at
            self._ready.notify_all()

    def flush(self, *, timeout: float) -> bool:
        """Wait until all is recorded and published; False after `timeout` seconds."""
        self.watch()
        with self._ready:
            self._reports.extend(self._due_starts(after=0.0))
            if self._reports or self._hints:
                self._wake_within(0)
            return self._ready.wait_for(self._is_flushed, timeout)

    def _is_flushed(self) -> bool:
        is_empty = not self._reports and not self._hints
        return self._idle and is_empty and not self._postponed

    def stop(self) -> None:
        """End the thread after its current statement; requests are not answered."""
        with self._ready:
            self._stopping = True
            self._ready.notify_all()

    def _run(self) -> None:
        try:
            self._work()
        except BaseException:
            # Also SystemExit, over which threads end in silence.
            log_events.IO_THREAD_DIED.log(logger, exc_info=True)
        finally:
            self._application.close()

    def _work(self) -> None:
        while True:
            with self._ready:
                self._idle = True
                self._ready.notify_all()
                while not self._stopping and (rest := self._due_at - time.monotonic()) > 0:
                    self._ready.wait(None if math.isinf(rest) else rest)
                if self._stopping and not self._reports:
                    return
                self._idle = False
                self._reports.extend(self._due_starts(after=START_SECONDS))
                reports, self._reports = self._reports, []
                requests = {} if self._stopping else self._requests.batch(ADMIT_AT_MOST)
                self._due_at = time.monotonic() if len(requests) < len(self._requests) else math.inf
                for at in islice(self._starts.values(), 1):
                    self._due_at = min(self._due_at, at + START_SECONDS)
                hints = self._due_hints()
                self._in_hand = reports, hints
            if not self._attempt(self._publish, hints, "publish"):
                self._requeue_hints(hints)
            if not self._attempt(self._record, reports, "record"):
                self._requeue_reports(reports)
                time.sleep(RETRY_SECONDS)
                continue
            self._in_hand = [], []
            if not self._attempt(self._admit, requests, "admit"):
                time.sleep(RETRY_SECONDS)
                self._requeue_reports([])
            self._prime()

    def _prime(self) -> None:
        if self._is_to_prime:
            self._attempt(lambda _: self._application.prime(), [self], "prime")
            with self._ready:
                self._may_prime_at = time.monotonic() + RETRY_SECONDS
                self._is_to_prime = False

    def _requeue_reports(self, reports: Reports) -> None:
        """Put reports back, to be tried again at once."""
        with self._ready:
            self._reports[:0] = reports
            self._in_hand = [], []
            self._wake_within(0)

    def _due_starts(self, *, after: float) -> Iterator[tuple[Report, None]]:
        """Take the starts that are older than this many seconds."""
        now = time.monotonic()
        for key in [key for key, at in self._starts.items() if at <= now - after]:
            yield Report(*key, Kind.STARTED, self._starts.pop(key)), None

    def _due_hints(self) -> Hints:
        """Take the hints, unless a publish has failed within the last second."""
        if self._hints and time.monotonic() < self._may_publish_at:
            self._due_at = min(self._due_at, self._may_publish_at)
            return []
        hints, self._hints = self._hints, []
        return hints

    def _requeue_hints(self, hints: Hints) -> None:
        """Put hints back, to be tried again in a second; the database does not wait for them."""
        with self._ready:
            self._hints[:0] = hints
            self._in_hand = self._in_hand[0], []
            self._may_publish_at = time.monotonic() + RETRY_SECONDS
            self._wake_within(RETRY_SECONDS)

    def _attempt(self, step: Callable[[Any], None], batch: Any, name: str) -> bool:
        if not batch:
            return True
        try:
            step(batch)
        except BrokerUnavailable as error:
            # The database's connection is fine and stays open.
            log_events.STEP_RETRIED.log(logger, step=name, error=error)
            return False
        except Exception:
            # Whatever was raised: the batch may be done or not, and all of it is safe to repeat.
            log_events.STEP_FAILED.log(logger, step=name, exc_info=True)
            try:
                self._application.close()
            except Exception:
                log_events.CONNECTION_NOT_CLOSED.log(logger, exc_info=True)
            return False
        return True

    # --- hints -------------------------------------------------------------------------

    def _publish(self, hints: Hints) -> None:
        self._application.publish([hint for hint, _ in hints])
        self._post(*(then for _, then in hints))

    # --- reports -----------------------------------------------------------------------

    def _record(self, reports: Reports) -> None:
        crash_point("ledger.before_record")
        states = self._application.record([report for report, _ in reports])
        crash_point("ledger.after_record")
        busy, done = [], []
        for report, then in reports:
            state = states.get(report.run_id)
            if state == BUSY_ROW:
                # A row that an operator has locked must not delay the others.
                busy.append((report, then))
            elif then is not None:
                done.append(partial(then, state))
        self._post(*done)
        if busy:
            self._postpone(busy)

    def _postpone(self, reports: Reports) -> None:
        def requeue() -> None:
            with self._ready:
                self._postponed -= 1
                self._reports[:0] = reports
                self._wake_within(0)

        with self._ready:
            self._postponed += 1
        timer = threading.Timer(RETRY_SECONDS, requeue)
        timer.daemon = True
        timer.start()

    # --- requests ----------------------------------------------------------------------

    def _admit(self, requests: Mapping[str, Asked]) -> None:
        crash_point("gate.before_admit")
        asked_at = time.monotonic()
        asked = [each.request for each in requests.values()]
        found = self._application.admit(self._node, asked)
        crash_point("gate.after_admit")
        for key in requests.keys() - found.keys():
            log_events.ADMISSION_FAILED.log(logger, run_id=requests[key].request.run_id)
        verdicts = {key: found.get(key, Refusal.BUSY) for key in requests}
        self._answer(requests, verdicts, asked_at)

    def _answer(
        self,
        requests: Mapping[str, Asked],
        verdicts: Mapping[str, Admission | Refusal],
        asked_at: float,
    ) -> None:
        with self._ready:
            waiting, late = self._requests.settle(requests)
        # A run that is admitted after its hint went back is handed back.
        for admission in (verdicts[key] for key in late):
            if isinstance(admission, Admission) and admission.is_kept:
                at = time.monotonic()
                self.report(Report(admission.run_id, admission.token, Kind.GIVEN_BACK, at))
        answers = [(each.answer, key) for key, each in waiting.items()]
        self._post(*(partial(answer, verdicts[key], asked_at) for answer, key in answers))
