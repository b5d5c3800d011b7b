"""docs/operate/pools.md: how long many threads wait in `.delay()` for a Redis that hangs."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from celery import Celery, current_app
from django.conf import settings
from kombu.exceptions import OperationalError

from jobs import setup_celery
from tests.docs.pages import blocks, read
from tests.proxy import NONE, Faults, Proxy

pytestmark = pytest.mark.proof

THREADS = 24
SOCKET_SECONDS = current_app.conf.broker_transport_options["socket_timeout"]


@pytest.fixture
def way() -> Iterator[Proxy]:
    with Proxy(settings.REDIS_URL) as proxy:
        yield proxy


def nothing() -> None: ...


def configured() -> dict[str, Any]:
    """Return the settings of the page."""
    [block] = blocks(read("docs/operate/pools.md"), info="python bounded")
    found: dict[str, Any] = {}
    exec(block.text, {}, found)
    return found


def test_each_thread_waits_for_the_socket_once(way: Proxy) -> None:
    """With the settings of the page; without them, for the connections of others as well."""
    took: list[float] = []

    def call() -> None:
        began_at = time.monotonic()
        with pytest.raises(OperationalError):
            task.delay()
        took.append(time.monotonic() - began_at)

    with Celery("threads", broker=way.url, set_as_current=False) as app:
        app.config_from_object("django.conf:settings", namespace="CELERY")
        setup_celery(app)
        app.conf.update(
            {name.removeprefix("CELERY_").lower(): value for name, value in configured().items()},
            broker_url=way.url,
        )
        task = app.task(name="tests.nothing")(nothing)
        task.delay()
        way.faults = Faults(hides_loss=True)
        threads = [threading.Thread(target=call) for _ in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(200)
        way.faults = NONE
        way.cut_all()
        task.delay()
    assert len(took) == THREADS
    assert max(took) < 1.8 * SOCKET_SECONDS
