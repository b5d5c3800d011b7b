"""Sends hints as messages: through Celery, or from a template that Celery has made.

If no other code may change a message, Celery makes one template for similar hints, and each hint
fills in its values (`fleet/broker/template.py`). This takes a fifth of the time.
"""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, Final

from celery import Celery, signals

from fleet.broker.template import Capture, Template, kind, marked, values
from fleet.contract import HEADER, HIGHEST, Hint
from fleet.plural import counted
from fleet.router import is_route, is_sole_receiver
from fleet.transport import scripts
from fleet.transport.transport import fair_queues

CHUNK: Final = 200
TEMPLATES_MOST: Final = 1_000


class Sender:
    """Sends the hints of one app in pipelined chunks."""

    def __init__(self, app: Celery) -> None:
        self._app = app
        self._templates: dict[tuple[Any, ...], Template] = {}

    def send(self, channel: Any, hints: Sequence[Hint], *, until: float = math.inf) -> None:
        """Send hints on a channel; if it fails, it is unknown how many have arrived.

        Raises TimeoutError after `until`, a `time.monotonic()`.
        """
        others: list[Hint] = []
        with channel.conn_or_acquire() as client:
            scripts.run_pipelined(client, self._calls(channel, hints, others, until=until))
        if others:
            with self._producer(channel) as producer, producer.batch(len(others)):
                for hint in others:
                    self._publish(producer, hint)

    def calls(self, channel: Any, hints: Sequence[Hint]) -> list[tuple[str, scripts.Call]] | None:
        """Return calls that send these hints; None if one of them must go through Celery."""
        others: list[Hint] = []
        calls = list(self._calls(channel, hints, others, until=math.inf))
        return None if others else calls

    def _calls(
        self, channel: Any, hints: Sequence[Hint], others: list[Hint], *, until: float
    ) -> Iterator[tuple[str, scripts.Call]]:
        """Yield the calls for hints of fair queues; add the other hints to `others`."""
        fair = self._fair if self._is_alone() else ()
        for start in range(0, len(hints), CHUNK):
            if time.monotonic() > until:
                raise TimeoutError(f"{start:,} of {counted(len(hints), 'hint')} went out in time")
            alike: dict[tuple[str, Template], list[Any]] = defaultdict(list)
            for hint in hints[start : start + CHUNK]:
                if hint.queue in fair and is_route(hint.owner, lock=hint.lock):
                    alike[hint.queue, self._template(channel, hint)].extend(values(hint))
                else:
                    others.append(hint)
            for (queue, template), each in alike.items():
                yield queue, ("hints", (*template.arguments, *each))

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

    def _template(self, channel: Any, hint: Hint) -> Template:
        alike = kind(hint)
        if alike not in self._templates:
            if len(self._templates) >= TEMPLATES_MOST:
                self._templates.clear()
            capture = Capture(channel)
            with self._producer(capture) as producer:
                self._publish(producer, marked(hint))
            self._templates[alike] = Template(capture.group)
        return self._templates[alike]

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
