"""Bytes in Redis that are no message: they stop no worker, and are put aside or refused."""

import pytest

from tests.contrast.conftest import Play
from tests.contrast.malformed import KINDS, good
from tests.waiting import wait_for


def test_no_kind_stops_a_worker(play: Play) -> None:
    """One after the other into the plain list, a good one behind each: all good ones run."""
    scene = play("fair")
    worker = scene.worker()
    names = [kind.replace(" ", "-") for kind in KINDS]
    for name, raw in zip(names, KINDS.values(), strict=True):
        scene.client.lpush(scene.queue, raw, good(name))
    wait_for(lambda: worker.poll() is not None or len(scene.said("end")) >= len(names), seconds=60)
    assert worker.poll() is None
    assert sorted(scene.said("end")) == sorted(names)
    assert scene.client.llen(scene.queue) == 0


@pytest.mark.parametrize("kind", ["a task that is an object", "headers are a list"])
def test_stock_dies_of_some(play: Play, kind: str) -> None:
    """The same bytes end a stock worker."""
    scene = play("stock")
    worker = scene.worker()
    scene.client.lpush(scene.queue, KINDS[kind])
    wait_for(lambda: worker.poll() is not None, seconds=15, what="the worker's end")
