"""fleet/worker/events.py: events of tasks are sent while somebody listens."""

import base64
import json
import time
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
import redis
from celery import Celery
from django.conf import settings

from fleet.worker.events import DEAF_SECONDS, EventDispatcher


@pytest.fixture
def dispatcher() -> Iterator[EventDispatcher]:
    """A worker's dispatcher, which batches the events of tasks; the test plays its timer."""
    with Celery("told", broker=settings.REDIS_URL, set_as_current=False) as app:
        app.conf.event_exchange = "told"
        app.events.dispatcher_cls = EventDispatcher
        with app.connection_for_write() as connection:
            yield app.events.Dispatcher(connection, hostname="w@here", buffer_group=["task"])


class Monitor:
    """Listens as Flower does: to all topics of the exchange."""

    def __init__(self, client: redis.Redis) -> None:
        self._pubsub = client.pubsub(ignore_subscribe_messages=True)
        self._pubsub.psubscribe("*told*")
        while client.pubsub_numpat() == 0:
            time.sleep(0.01)
        self._pubsub.get_message(timeout=1)  # says that it listens

    def heard(self) -> list[dict[str, Any]]:
        """Return the events since the last call."""
        events: list[dict[str, Any]] = []
        while (message := self._pubsub.get_message(timeout=0.3)) is not None:
            body = json.loads(base64.b64decode(json.loads(message["data"])["body"]))
            events += body if isinstance(body, list) else [body]
        return events

    def close(self) -> None:
        self._pubsub.close()


def tell(dispatcher: EventDispatcher, uuid: str) -> None:
    """Send a task's event, and let the timer fire."""
    dispatcher.send("task-received", uuid=uuid)
    dispatcher.flush()


@pytest.mark.parametrize("before", [[], ["into the void"]])
def test_who_listens_hears_every_task(
    dispatcher: EventDispatcher, broker: redis.Redis, before: list[str]
) -> None:
    """As with Celery's own; at the latest a second after the last event without a listener."""
    for uuid in before:
        tell(dispatcher, uuid)
    with closing(Monitor(broker)) as monitor:
        if before:
            time.sleep(DEAF_SECONDS)
        for number in range(3):
            tell(dispatcher, str(number))
        events = monitor.heard()
    assert [event["uuid"] for event in events] == ["0", "1", "2"]
    assert {event["type"] for event in events} == {"task-received"}
    assert {event["hostname"] for event in events} == {"w@here"}
