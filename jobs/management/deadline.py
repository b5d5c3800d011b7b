"""Calls with a deadline, each in a thread of its own: a server that hangs holds up no command.

A thread that is late is left behind; it ends with the process.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from django.db import connections
from django.utils import translation

T = TypeVar("T")


def begin(call: Callable[[], T]) -> Future[T]:
    """Begin a call in a thread of its own; its `result` raises TimeoutError if it is late."""
    future: Future[T] = Future()
    # Not of an executor, whose threads are waited for at the end of the process.
    threading.Thread(target=_run, args=(call, future), daemon=True).start()
    return future


def _run(call: Callable[[], T], future: Future[T]) -> None:
    # A thread has its own language and connections. Commands speak English.
    translation.deactivate_all()
    try:
        try:
            answer = call()
        finally:
            connections.close_all()
    except BaseException as error:
        future.set_exception(error)
    else:
        future.set_result(answer)
