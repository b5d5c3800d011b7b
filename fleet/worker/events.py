"""Celery's task events at a lower cost."""

from __future__ import annotations

import time
from typing import Any, Final

from celery.events import dispatcher
from celery.utils.time import utcoffset

OFFSET_SECONDS: Final = 60.0
DEAF_SECONDS: Final = 1.0


class EventDispatcher(dispatcher.EventDispatcher):
    """Celery's dispatcher, which makes no task events while no monitor receives them.

    Redis returns the number of receivers. If it is 0, the task events of the next second are
    dropped. The local time's offset is computed once a minute.
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
            # An event that could not be sent is buffered, and the number is that of an earlier one.
            is_sent = len(self._outbound_buffer) == unsent
            is_heard = not is_sent or getattr(producer.channel, "receiver_count", 1) > 0
            self._deaf_until = 0.0 if is_heard else time.monotonic() + DEAF_SECONDS

    def extend_buffer(self, other: Any) -> None:
        """Take over what a lost connection left, without its heartbeats: the next one is due soon.

        The flush sends one after the other, and the loop does not turn meanwhile.
        """
        self._outbound_buffer.extend(
            unsent for unsent in other._outbound_buffer if unsent[1] != "worker.heartbeat"
        )

    def _utcoffset(self) -> float:
        now = time.monotonic()
        if now >= self._offset_due_at:
            self._offset_hours, self._offset_due_at = utcoffset(), now + OFFSET_SECONDS
        return self._offset_hours
