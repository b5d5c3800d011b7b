"""Sends hints: their values, of which the consumer makes messages, or whole messages of Celery.

Celery takes 60 µs to make a message, of which a hint needs ten short values. It makes one only for
other code that may change or count messages, and for stock queues.
"""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, Final

from celery import Celery, signals

from fleet.contract import HEADER, HIGHEST, Hint
from fleet.plural import counted
from fleet.router import is_route, is_sole_receiver
from fleet.transport import scripts
from fleet.transport.envelope import MICROSECONDS, relative
from fleet.transport.transport import fair_queues

CHUNK: Final = 200


class Sender:
    """Sends the hints of one app in pipelined chunks."""

    def __init__(self, app: Celery) -> None:
        self._app = app

    def send(self, channel: Any, hints: Sequence[Hint], *, until: float = math.inf) -> None:
        """Send hints on a channel; if it fails, it is unknown how many have arrived.

        Raises TimeoutError after `until`, a `time.monotonic()`.
        """
        others: list[Hint] = []
        with channel.conn_or_acquire() as client:
            scripts.run_pipelined(client, self._calls(hints, others, until=until))
        if others:
            with self._producer(channel) as producer, producer.batch(len(others)):
                for hint in others:
                    self._publish(producer, hint)

    def calls(self, hints: Sequence[Hint]) -> list[tuple[str, scripts.Call]] | None:
        """Return calls that send these hints; None if one of them must go through Celery."""
        others: list[Hint] = []
        calls = list(self._calls(hints, others, until=math.inf))
        return None if others else calls

    def _calls(
        self, hints: Sequence[Hint], others: list[Hint], *, until: float
    ) -> Iterator[tuple[str, scripts.Call]]:
        """Yield the calls for hints of fair queues; add the other hints to `others`."""
        fair = self._fair if self._is_alone() else ()
        for start in range(0, len(hints), CHUNK):
            if time.monotonic() > until:
                raise TimeoutError(f"{start:,} of {counted(len(hints), 'hint')} went out in time")
            alike: dict[tuple[str, int, str], list[Any]] = defaultdict(list)
            for hint in hints[start : start + CHUNK]:
                if hint.queue in fair and is_route(hint.owner, lock=hint.lock):
                    alike[hint.queue, hint.priority, hint.task].extend(_values(hint))
                else:
                    others.append(hint)
            for (queue, priority, task), each in alike.items():
                yield queue, ("hints", (priority, task, *each))

    def _is_alone(self) -> bool:
        """Say whether no other code receives a signal or event about sent messages."""
        is_heard = signals.after_task_publish.receivers or self._has_events
        return is_sole_receiver() and not is_heard

    # Read once: Celery's settings take longer to read than a hint to send.
    @cached_property
    def _fair(self) -> tuple[str, ...]:
        return fair_queues(self._app)

    @cached_property
    def _has_events(self) -> bool:
        return bool(self._app.conf.task_send_sent_event)

    def _producer(self, channel: Any) -> Any:
        return self._app.amqp.Producer(channel, auto_declare=False)

    def _publish(self, producer: Any, hint: Hint) -> None:
        message = self._app.amqp.as_task_v2(
            hint.run_id,
            hint.task,
            # A hint has no arguments to show.
            argsrepr="…",
            kwargsrepr="…",
            retries=hint.attempt - 1,
            countdown=hint.delay_seconds if hint.delay_seconds > 0 else None,
            ignore_result=True,
        )
        facts: dict[str, Any] = {
            "owner": hint.owner,
            "submission": hint.submission,
            "run": hint.run_id,
            "token": hint.token,
        }
        if hint.job is not None:
            facts["job"] = hint.job
        if hint.lock:
            facts["lock"] = hint.lock
        if hint.delay_seconds < 0:
            facts["waited_seconds"] = -hint.delay_seconds
        if hint.not_after_seconds is not None:
            facts["not_after_seconds"] = hint.not_after_seconds
        self._app.amqp.send_task_message(
            producer,
            hint.task,
            message,
            queue=hint.queue,
            priority=HIGHEST - hint.priority,
            headers={HEADER: facts},
            declare=(),
            retry=False,
        )


def _values(hint: Hint) -> tuple[Any, ...]:
    """Return the arguments of `hints.lua` for one hint."""
    deadline = None if hint.not_after_seconds is None else relative(hint.not_after_seconds)
    return (
        *(hint.run_id, hint.token, hint.owner, hint.submission or ""),
        *("" if hint.job is None else hint.job, hint.attempt),
        *(round(hint.delay_seconds * MICROSECONDS), hint.lock),
        "" if deadline is None else deadline,
    )
