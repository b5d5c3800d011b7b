"""Publishes many messages at once: those of a fair queue in one script call."""

from __future__ import annotations

from typing import Any

from kombu.exceptions import BatchPublishError
from kombu.transport import redis

from fleet.transport import scripts


class PublishBatch(redis.PublishBatch):
    """Kombu's batch, which collects messages for fair queues by queue."""

    def __init__(self, channel: Any, max_size: int) -> None:
        self._groups: dict[str, list[Any]] = {}
        self._count = 0
        super().__init__(channel, max_size)

    def add_fair(self, queue: str, group: tuple[Any, ...]) -> None:
        """Add a message for a fair queue, as the arguments of `enqueue`."""
        self._groups.setdefault(queue, []).extend(group)
        self._count += 1

    def publish(self, message: Any, **kwargs: Any) -> Any:
        result = super().publish(message, **kwargs)
        if self._count >= self.max_size:
            self.flush()
        return result

    def flush(self) -> None:
        """Send the batch; raise BatchPublishError if it is unknown what arrived.

        Publishing again is harmless for fair queues only.
        """
        super().flush()
        groups, self._groups, self._count = self._groups, {}, 0
        try:
            with self.channel.conn_or_acquire() as client:
                for queue, arguments in groups.items():
                    scripts.run(client, queue, "enqueue", *arguments)
        except Exception as error:
            self._failed = error
            raise BatchPublishError("Redis publish batch failed; delivery is uncertain") from error

    def discard(self) -> None:
        self._groups, self._count = {}, 0
        super().discard()
