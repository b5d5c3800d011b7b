"""Remote control of the workers that a scene has started, and their events."""

import threading
from typing import Any

from celery import Celery

from tests.waiting import wait_for


def await_heard(app: Celery, node: str) -> None:
    """Return when this worker answers.

    A worker says "ready" a moment before it subscribes to commands, and Redis keeps none of them
    for those who subscribe later.
    """
    wait_for(
        lambda: app.control.ping([node], timeout=1, limit=1),
        seconds=30,
        what=f"an answer of {node}",
    )


class EventLog:
    """Receives every event of the workers of an app's broker."""

    def __init__(self, app: Celery) -> None:
        self.events: list[dict[str, Any]] = []
        self._connection = app.connection_for_read()
        handlers = {"*": self.events.append}
        self._receiver = app.events.Receiver(self._connection, handlers=handlers)
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def _listen(self) -> None:
        # Without a limit: events between two subscriptions would be lost.
        self._receiver.capture(limit=None, timeout=None, wakeup=False)
        self._connection.close()

    def close(self) -> None:
        self._receiver.should_stop = True
        self._thread.join(100)

    def of(self, task_id: str) -> list[str]:
        """Return the types of the events of a task, in order."""
        return [event["type"] for event in self.events if event.get("uuid") == task_id]
