"""What Flower is told, three times a task: Celery's events, for less; of durable runs no values."""

from __future__ import annotations

import time
from typing import Any, Final

from celery.events import dispatcher
from celery.utils.time import utcoffset

OFFSET_SECONDS: Final = 60.0
DEAF_SECONDS: Final = 1.0
TOLD: Final = frozenset({"uuid", "runtime", "terminated", "expired"})
"""The fields of a durable run's events, besides those that Celery adds to every event."""


class EventDispatcher(dispatcher.EventDispatcher):
    """Celery's dispatcher, which tells nothing of tasks while nobody listens.

    Redis says how many have heard a word. When none has, the events of the next second are not
    even made: a monitor that begins to listen then misses what one that begins later would miss. It
    also asks for the local time's offset once a minute only.
    """

    _offset_hours = 0.0
    _offset_due_at = 0.0
    _deaf_until = 0.0

    def send(self, type: str, **options: Any) -> Any:  # noqa: A002  Celery's name
        if self._deaf_until and type.startswith("task-") and time.monotonic() < self._deaf_until:
            return None
        return super().send(type, **{"utcoffset": self._utcoffset, **options})

    def _publish(self, event: Any, producer: Any, routing_key: str, **options: Any) -> None:
        unsent = len(self._outbound_buffer)
        super()._publish(event, producer, routing_key, **options)
        if routing_key == "task.multi" and producer is not None:
            # A word that could not be sent is kept, and says nothing of who listens.
            is_sent = len(self._outbound_buffer) == unsent
            is_heard = not is_sent or getattr(producer.channel, "heard_by", 1) > 0
            self._deaf_until = 0.0 if is_heard else time.monotonic() + DEAF_SECONDS

    def _utcoffset(self) -> float:
        now = time.monotonic()
        if now >= self._offset_due_at:
            self._offset_hours, self._offset_due_at = utcoffset(), now + OFFSET_SECONDS
        return self._offset_hours


class BareEvents:
    """The events of one durable run, without what its row protects.

    Arguments, result, error and traceback would pass through Redis to Flower, and around the
    permission to view arguments. Events keep the run's id, its times and how it ended.
    """

    __slots__ = ("_eventer",)

    def __init__(self, eventer: Any) -> None:
        self._eventer = eventer

    @property
    def enabled(self) -> bool:
        """Whether events are sent at all."""
        return bool(self._eventer and self._eventer.enabled)

    def send(self, type: str, **fields: Any) -> Any:  # noqa: A002  Celery's name
        return self._eventer.send(type, **{name: fields[name] for name in fields if name in TOLD})
