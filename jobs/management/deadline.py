"""Calls with a deadline, each in a thread of its own: a server that hangs holds up no command.

A thread that is late is left behind; it ends with the process.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

from django.db import connections
from django.utils import translation

T = TypeVar("T")


class Call(Generic[T]):
    """A call that runs in a thread since it was made."""

    def __init__(self, call: Callable[[], T]) -> None:
        self._call = call
        self._answer: list[T] = []
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def answer(self, *, until: float) -> T:
        """Return the answer or raise the error of the call; TimeoutError if it is late.

        `until` is a time of `time.monotonic()`.
        """
        self._thread.join(max(0.0, until - time.monotonic()))
        if self._thread.is_alive():
            raise TimeoutError
        if self._error is not None:
            raise self._error
        return self._answer[0]

    def _run(self) -> None:
        # A thread has its own language and connections. Commands speak English.
        translation.deactivate_all()
        try:
            self._answer.append(self._call())
        except BaseException as error:
            self._error = error
        finally:
            connections.close_all()


def answer_within(seconds: float, call: Callable[[], T]) -> T:
    """Return the answer or raise the error of a call; TimeoutError after so many seconds."""
    return Call(call).answer(until=time.monotonic() + seconds)
