"""Hints of tasks that this worker does not know, as in a rolling deploy.

If another live worker of the queue knows the task, the message goes back to the queue. If not, the
message is dropped, and the row waits for such a worker.
"""

from __future__ import annotations

import logging
import random
import time
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from itertools import islice
from typing import Any, Final

from fleet import log_events
from fleet.callbacks import guarded
from fleet.contract import Admission, AdmissionRequest, Refusal, is_hint
from fleet.worker.admitted import admission_request_of
from fleet.worker.io_thread import IOThread

logger = logging.getLogger(__name__)

FIRST_PAUSE_SECONDS: Final = 0.25
LONGEST_PAUSE_SECONDS: Final = 2.0
"""The longest pause of a message while there are few of them."""
MOST_SECONDS: Final = 10.0
RETURNS_A_SECOND: Final = 100
"""With many messages, pauses grow up to MOST_SECONDS, for about this many returns a second."""
REMEMBERED_SECONDS: Final = 60.0
REMEMBERED: Final = 10_000
LOG_SECONDS: Final = 60.0


def pause_before(returns: int, *, known: int, chance: float) -> float:
    """Return the pause (seconds) of a message after so many `returns` by this worker. Pure.

    Every second return has none: the queue wakes the worker that has waited longest, which is
    another one. `known` is how many such messages the worker has met lately. `chance`, from 0 to 1,
    spreads them in time: all at once, they would find the other worker busy.
    """
    if returns % 2 == 0:
        return 0.0
    longest = min(max(LONGEST_PAUSE_SECONDS, known / RETURNS_A_SECOND), MOST_SECONDS)
    return min(longest, FIRST_PAUSE_SECONDS * 2.0 ** min(returns // 2, 20)) * (0.5 + chance)


class UnknownTasks:
    """Handles one worker's hints of tasks that it does not know."""

    def __init__(
        self, io_thread: IOThread, *, later: Callable[..., Any], settle: Callable[..., Any]
    ) -> None:
        self._io_thread = io_thread
        self._later = later
        self._settle = settle
        self._returns: OrderedDict[str, tuple[int, float]] = OrderedDict()
        self._logged_at: dict[str, float] = {}

    def on_message(self, message: Any) -> bool:
        """Handle a message of an unknown task; False if it is no hint: Celery handles that."""
        if not is_hint(message.headers):
            return False
        admission_request = admission_request_of(message.headers)
        if admission_request is None:
            self._drop(message)
            return True
        admission_request = admission_request._replace(is_known=False)
        if not self._io_thread.request_admission(
            admission_request, partial(self._answer, message, admission_request)
        ):
            # The same message again, after its lease expired.
            self._give_back(message, admission_request)
        return True

    def _answer(
        self,
        message: Any,
        admission_request: AdmissionRequest,
        verdict: Admission | Refusal,
        _asked_at: float,
    ) -> None:
        if verdict is Refusal.BUSY:
            self._log(admission_request.task, "given back to the queue")
            self._give_back(message, admission_request)
        else:
            if verdict is Refusal.WAITS:
                self._log(
                    admission_request.task,
                    "no live worker of its queue knows it: its runs wait for one",
                )
            self._drop(message)

    def _give_back(self, message: Any, admission_request: AdmissionRequest) -> None:
        """Give the message back for other workers, with or without a pause."""
        returns = self._count_return(admission_request.key)
        chance = random.random()  # noqa: S311  no secret
        pause = pause_before(returns, known=len(self._returns), chance=chance)
        is_fair = message.delivery_tag in getattr(message.channel, "leases", ())
        if pause and is_fair:
            message.channel.qos.requeue_later(message.delivery_tag, seconds=pause)
        elif pause:
            # A stock queue has no delay, and would give the message to this worker at once.
            self._later(pause, guarded(self._requeue), (message,))
        else:
            self._requeue(message)

    def _count_return(self, key: str) -> int:
        """Return how often a message was given back before; forget old ones."""
        now = time.monotonic()
        returns, _ = self._returns.pop(key, (0, now))
        self._returns[key] = (returns + 1, now)
        for oldest, (_, at) in list(islice(self._returns.items(), 2)):
            # Two at a time, as each return adds at most one.
            if len(self._returns) > REMEMBERED or at < now - REMEMBERED_SECONDS:
                del self._returns[oldest]
        return returns

    def _requeue(self, message: Any) -> None:
        self._settle(message.reject_log_error, logger, (OSError,), requeue=True)

    def _drop(self, message: Any) -> None:
        self._settle(message.ack_log_error, logger, (OSError,))

    def _log(self, task: str, outcome: str) -> None:
        """Log an unknown task, at most once a minute each."""
        now = time.monotonic()
        if now - self._logged_at.get(task, -LOG_SECONDS) >= LOG_SECONDS:
            self._logged_at[task] = now
            log_events.UNKNOWN_TASK.log(logger, task=task, outcome=outcome)
