"""Guards what a worker's event loop, its timers and signals call: an error must not reach the loop.

Celery takes an OSError from a timer for a lost connection, and one of too few file descriptors for
a reason to end with all tasks.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from functools import wraps
from typing import Final, ParamSpec, TypeVar

from fleet import log_events

P = ParamSpec("P")
R = TypeVar("R")

logger = logging.getLogger(__name__)

LOG_SECONDS: Final = 60.0
NAMED_MOST: Final = 1_000
"""Names of which a process knows when they were logged."""
_logged_at: dict[str, float] = {}
"""When a line of each name was logged last."""


def guarded(callback: Callable[P, R], name: str = "") -> Callable[P, R | None]:
    """Return a callback that logs its error and returns None; at most one line a minute a name.

    SystemExit passes: Celery ends a worker by it.
    """
    name = name or getattr(callback, "__qualname__", repr(callback))

    @wraps(callback)
    def call(*args: P.args, **kwargs: P.kwargs) -> R | None:
        try:
            return callback(*args, **kwargs)
        except Exception as error:
            if may_log(name):
                log_events.CALLBACK_RAISED.log(logger, callback=name, error=error, exc_info=error)
            return None

    return call


def may_log(name: str) -> bool:
    """Say, at most once a minute, that there may be a line of this name."""
    now = time.monotonic()
    if now - _logged_at.get(name, -LOG_SECONDS) < LOG_SECONDS:
        return False
    if len(_logged_at) >= NAMED_MOST:
        _logged_at.clear()
    _logged_at[name] = now
    return True
