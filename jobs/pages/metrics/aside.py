"""Ask a server in a thread of its own: a request does not wait for it longer than it wants to."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Generic, TypeVar

T = TypeVar("T")


class Aside(Generic[T]):
    """A call in a thread. One that is given up ends by itself, by the timeouts of its sockets."""

    def __init__(self, ask: Callable[[], T]) -> None:
        self._answer: Future[T] = Future()
        threading.Thread(target=self._run, args=(ask,), daemon=True).start()

    def result(self, *, seconds: float) -> T:
        """Return the result within so many seconds; raise what it raised, or TimeoutError."""
        return self._answer.result(seconds)

    def _run(self, ask: Callable[[], T]) -> None:
        try:
            self._answer.set_result(ask())
        except Exception as error:
            # Raised again by `result`.
            self._answer.set_exception(error)
