"""A job of the pool: its callbacks, and how far it has come."""

from __future__ import annotations

import itertools
import logging
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fleet import log_events

if TYPE_CHECKING:
    from fleet.pool.child import Child

logger = logging.getLogger(__name__)

Callback = Callable[..., Any]


@dataclass(slots=True, weakref_slot=True, eq=False, repr=False, kw_only=True)
class Job:
    """What `apply_async` returns; Celery keeps a weak reference, and calls `terminate`."""

    packet: bytes
    expected: float
    correlation_id: str | None
    soft_limit: float | None
    hard_limit: float | None
    on_accept: Callback | None
    on_value: Callback | None
    on_error: Callback | None
    on_limit: Callback | None
    number: int = field(default_factory=itertools.count().__next__)
    give_back: Callable[[], Any] | None = None
    """Gives its message back to the broker, if that is a fair queue."""
    on_withdrawn: Callable[[], Any] | None = None
    child: Child | None = None
    """The child that runs it, once the pool knows that."""
    began_at: float = 0.0
    timers: tuple[Any, ...] = ()
    soft_sent: bool = False
    kill_at: float = math.inf
    """When it is killed while its pool stops; until then, its caller has a timer for that."""
    _is_ready: bool = field(default=False, init=False)

    def ready(self) -> bool:
        """Say whether it has ended."""
        return self._is_ready

    @property
    def is_running(self) -> bool:
        """Whether its child is known, and has read no other job since."""
        return self.child is not None and self.child.row.number == self.number

    def ask_to_stop(self) -> bool:
        """Note that the next soft signal to its child is for it; False if it has ended."""
        if self.child is None or not self.is_running:
            return False
        self.child.row.ask_to_stop(self.number)
        return True

    def cancel_timers(self) -> None:
        """Cancel the timers of its limits."""
        for timer in self.timers:
            timer.cancel()
        self.timers = ()

    def terminate(self, signum: int) -> None:
        """Do nothing: Celery calls this after `terminate_job`, which has sent the signal."""

    def accept(self, pid: int, began_at: float) -> None:
        """Tell its caller that a child has begun it."""
        self.began_at = began_at
        self._call(self.on_accept, pid, began_at)

    def exceed(self, *, soft: bool) -> None:
        """Tell its caller that a time limit is reached; at a hard one it has ended."""
        if not soft:
            self._is_ready = True
        limit = self.soft_limit if soft else self.hard_limit
        self._call(self.on_limit, soft=soft, timeout=limit)

    def end(self, *, is_value: bool, answer: Any) -> None:
        """Tell its caller its value, or its error as billiard's `ExceptionInfo`."""
        self._is_ready = True
        self._call(self.on_value if is_value else self.on_error, answer)

    def _call(self, callback: Callback | None, *args: Any, **facts: Any) -> None:
        # SystemExit passes: Celery ends a worker by it.
        try:
            if callback is not None:
                callback(*args, **facts)
        except Exception as error:
            log_events.CALLBACK_RAISED.log(
                logger, callback="Job.callback", error=error, exc_info=error
            )
