"""Replies of Redis are lost on the way while a worker starts over its lost connection."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings

from tests.contrast.conftest import both
from tests.contrast.installation import Contrast, contrast
from tests.fleet.fair_worlds import connected
from tests.proxy import NONE, Faults, Proxy
from tests.waiting import wait_for

SOCKET_SECONDS = 0.3
LOSSES = 4
"""Kombu gives up after two."""


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    """A proxy before the tests' own Redis."""
    with Proxy(settings.REDIS_URL) as proxy:
        yield proxy


@pytest.fixture
def scene(side: str, proxy: Proxy, tmp_path: Path) -> Iterator[Contrast]:
    """A side whose processes reach Redis through the proxy."""
    timeouts = {"socket_timeout": SOCKET_SECONDS, "socket_connect_timeout": SOCKET_SECONDS}
    environ = {"CONTRAST_OPTIONS": json.dumps(timeouts)}
    with contrast(side, tmp_path, proxy.url, client=connected(), **environ) as scene:
        yield scene


@both
@pytest.mark.parametrize("hangs", [False, True], ids=["lost", "hung"])
def test_hello_is_lost(side: str, scene: Contrast, proxy: Proxy, hangs: bool) -> None:
    """Mingle publishes after each reconnect. Stock dies of it; a fair worker tries again.

    Kombu raises its own OperationalError for it, which Celery does not count as a lost connection.
    """
    worker = scene.worker(mingle=True)
    proxy.faults = Faults(lost=1.0, command=b"PUBLISH", hangs=hangs)
    proxy.cut_all()
    said = "hung" if hangs else "lost"
    if side == "stock":
        assert worker.wait(300) == 1
        return
    wait_for(
        lambda: proxy.counts[said] >= LOSSES or worker.poll() is not None,
        seconds=60,
        what="PUBLISH to be lost again and again",
    )
    assert worker.poll() is None, scene.log_end(worker)
    proxy.faults = NONE
    scene.call("run.delay('after')")
    wait_for(lambda: scene.said("end") == ["after"], seconds=30, what="the task after the faults")
    assert worker.poll() is None
