"""Tells the fair queues when a run begins and ends, on every pool and for every task."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

from billiard.exceptions import WorkerLostError
from celery.worker import state as worker_state

from fleet.pool import children_of


class Entrance:
    """Replaces a pool's `apply_async`: a task passes the gate, then its queue hears of its run.

    A worker without durable runs has no gate.
    """

    def __init__(self, pool: Any) -> None:
        self._pool = pool
        self._apply_async = pool.apply_async
        self.gate: Callable[..., Any] = self.hand_in

    def __call__(self, *args: Any, **options: Any) -> Any:
        return self.gate(*args, **options)

    def hand_in(self, *args: Any, **options: Any) -> Any:
        """Hand a task to the pool; the queue of its message hears of its run."""
        request = worker_state.requests.get(options.get("correlation_id"))
        message = getattr(request, "_message", None)
        qos: Any = getattr(getattr(message, "channel", None), "qos", None)
        if message is None or not hasattr(qos, "finished"):
            return self._apply_async(*args, **options)
        options.update(_Watch(qos, message.delivery_tag).around(options))
        # From here on it runs here. Not only from when the pool says so: a pool that ends, or
        # whose worker has lost its connection, runs what it has been handed.
        qos.started(message.delivery_tag)
        if children_of(self._pool):
            options["expected"] = qos.leases.expected_seconds(message.delivery_tag)
        job = self._apply_async(*args, **options)
        if hasattr(job, "_write_to"):
            # For a pool of processes that must forget it: see `fleet.pool.pool.Pool.flush`.
            job.give_back = partial(qos.leases.give_back, message.delivery_tag)
        return job


class _Watch:
    """One run: its begin, and its end by whichever way the pool tells of it first."""

    def __init__(self, qos: Any, tag: str) -> None:
        self._qos = qos
        self._tag = tag
        self._began_at = time.monotonic()

    def around(self, options: dict[str, Any]) -> dict[str, Callable[..., Any]]:
        """Return these callbacks of Celery's, each after a word to the queue."""
        words: dict[str, Callable[..., None]] = {
            "accept_callback": self._accepted,
            "callback": self._returned,
            "error_callback": self._failed,
            "timeout_callback": self._timed_out,
        }
        return {
            name: partial(_after, word, options[name])
            for name, word in words.items()
            if options.get(name) is not None
        }

    def _accepted(self, _pid: int, accepted_at: float) -> None:
        self._began_at = accepted_at

    def _returned(self, answer: Any, *_more: Any) -> None:
        # Celery's tracer answers with a flag, a value and the seconds that it measured itself:
        # this process may have come to look much later.
        try:
            seconds = float(answer[2])
        except (TypeError, LookupError, ValueError):
            seconds = self._elapsed()
        self._qos.finished(self._tag, seconds)

    def _failed(self, einfo: Any = None, *_more: Any, **_facts: Any) -> None:
        error = getattr(einfo, "exception", None)
        if isinstance(getattr(error, "exc", error), WorkerLostError):
            self._qos.lost(self._tag)
        self._qos.finished(self._tag, self._elapsed())

    def _timed_out(self, soft: bool, timeout: float) -> None:  # noqa: ARG002  the pool's words
        if not soft:
            self._failed()

    def _elapsed(self) -> float:
        return time.monotonic() - self._began_at


def _after(
    word: Callable[..., None], callback: Callable[..., Any], *args: Any, **facts: Any
) -> Any:
    word(*args, **facts)
    return callback(*args, **facts)
