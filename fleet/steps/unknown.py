"""Hints of tasks that this worker does not know, as an old worker meets them in a rolling deploy.

The application says whether another live worker of the queue knows the task. If so, the message
goes back to the queue. If not, the row waits for such a worker, and the message is dropped.
"""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import structlog

from fleet.contract import Admission, Ask, Refusal, is_hint
from fleet.edge import Edge
from fleet.steps.held import ask_of

logger = structlog.get_logger(__name__)
celery_logger = logging.getLogger(__name__)

FIRST_PAUSE_SECONDS: Final = 0.25
LONGEST_PAUSE_SECONDS: Final = 10.0
LOG_SECONDS: Final = 60.0
REMEMBERED: Final = 10_000
"""Messages whose returns are counted; the pauses of older ones begin anew."""


def pause_before(returns: int) -> float:
    """Return for how many seconds a message rests that this worker has given back so often. Pure.

    Every other time not at all: a queue wakes the worker that has waited longest, and that is
    another one. After a pause it may well be this one, who knows when the pause ends.
    """
    if returns % 2 == 0:
        return 0.0
    return min(LONGEST_PAUSE_SECONDS, FIRST_PAUSE_SECONDS * 2.0 ** min(returns // 2, 10))


class UnknownTasks:
    """What one worker does with hints of tasks that it does not know."""

    def __init__(
        self, edge: Edge, *, later: Callable[..., Any], settle: Callable[..., Any]
    ) -> None:
        self._edge = edge
        self._later = later
        self._settle = settle
        self._returns: OrderedDict[str, int] = OrderedDict()
        self._logged_at: dict[str, float] = {}

    def on_message(self, message: Any) -> bool:
        """Take a message of an unknown task; False for one that is no hint, which is Celery's."""
        if not is_hint(message.headers):
            return False
        ask = ask_of(message.headers)
        if ask is None:
            self._drop(message)
            return True
        ask = ask._replace(is_known=False)
        if not self._edge.ask(ask, partial(self._answer, message, ask)):
            # The same message again, after a lease that ran out.
            self._give_back(message, ask)
        return True

    def _answer(
        self, message: Any, ask: Ask, verdict: Admission | Refusal, _asked_at: float
    ) -> None:
        if verdict is Refusal.BUSY:
            self._log(ask.task, "given back to the queue")
            self._give_back(message, ask)
        else:
            if verdict is Refusal.WAITS:
                self._log(ask.task, "no live worker of its queue knows it: its runs wait for one")
            self._drop(message)

    def _give_back(self, message: Any, ask: Ask) -> None:
        """Let other workers have the message: at once, or after a pause when that was in vain."""
        returns = self._returns.pop(ask.key, 0)
        self._returns[ask.key] = returns + 1
        if len(self._returns) > REMEMBERED:
            self._returns.popitem(last=False)
        pause = pause_before(returns)
        is_fair = message.delivery_tag in getattr(message.channel, "leases", ())
        if pause and is_fair:
            message.channel.qos.put_off(message.delivery_tag, seconds=pause)
        elif pause:
            # A stock queue knows no delay, and would give the message to this worker at once.
            self._later(pause, self._requeue, (message,))
        else:
            self._requeue(message)

    def _requeue(self, message: Any) -> None:
        self._settle(message.reject_log_error, celery_logger, (OSError,), requeue=True)

    def _drop(self, message: Any) -> None:
        self._settle(message.ack_log_error, celery_logger, (OSError,))

    def _log(self, task: str, outcome: str) -> None:
        """Log an unknown task, at most once a minute each."""
        now = time.monotonic()
        if now - self._logged_at.get(task, -LOG_SECONDS) >= LOG_SECONDS:
            self._logged_at[task] = now
            logger.warning("unknown_task", task=task, outcome=outcome)
