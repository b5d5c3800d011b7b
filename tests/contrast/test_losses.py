"""What a killed worker, a lost reply and a long task do to messages."""

import os
import signal
import time
from typing import Any

import pytest

from fleet.keys import queue_key
from tests.contrast.conftest import Play, both
from tests.waiting import wait_for

LEASE = "1.5"
TRIES = 10
"""Stock waits a second at a time: on a busy machine the message comes between two waits."""


@both
def test_a_message_that_a_dying_worker_was_about_to_get(play: Play, side: str) -> None:
    """Stock pops it for a worker that never reads the answer; here it waits for a living one."""
    if side == "fair":
        assert sorted(_started_after_a_death(play(side, CONTRAST_LEASE=LEASE), 3)) == list("012")
        return
    for _ in range(TRIES):
        scene = play(side, CONTRAST_LEASE="3600")
        _started_after_a_death(scene, 2)
        time.sleep(1)  # the defect is that the third never comes
        if len(scene.said("start")) == 2:
            return
    pytest.fail("stock lost no message")


def _started_after_a_death(scene: Any, expected: int) -> list[str]:
    """Publish for a worker that dies while it waits; return what another one starts."""
    worker = scene.worker()
    # It waits for work by now, in a call that blocks at the server.
    wait_for(lambda: _blocked(scene.client))
    os.killpg(worker.pid, signal.SIGSTOP)
    scene.call("for n in range(3): run.delay(n)")
    scene.kill(worker)
    scene.worker()
    wait_for(lambda: len(scene.said("end")) >= expected, seconds=15)
    return list(scene.said("start"))


@pytest.mark.smoke
@both
def test_a_task_longer_than_its_lease(play: Play, side: str) -> None:
    """Stock gives it to another worker while it runs; here its worker lives, and that is enough."""
    scene = play(side, CONTRAST_LEASE="4")
    scene.worker()
    scene.worker()
    scene.call("run.delay('long', 15)")
    wait_for(lambda: scene.said("end"), seconds=30)
    starts = len(scene.said("start"))
    assert starts == 1 if side == "fair" else starts > 1


def test_a_task_that_kills_its_process(play: Play) -> None:
    """Stock starts it again at once, for ever; here each loss makes it wait longer, ten at most."""
    scene = play("fair")
    scene.worker()
    scene.call("poison.delay('poison')")
    strikes = queue_key(scene.queue, "strikes")
    wait_for(lambda: scene.client.hvals(strikes) == [b"2"], seconds=20)
    [known] = scene.client.hkeys(strikes)
    # It waits four seconds now. As if it had done so nine times: its next start is the last.
    scene.client.hset(strikes, known, 9)
    wait_for(lambda: scene.client.llen(queue_key(scene.queue, "quarantine")) == 1, seconds=60)
    assert len(scene.said("start")) == 3
    scene.call("run.delay('next')")
    wait_for(lambda: "next" in scene.said("end"), seconds=15)


def _blocked(client: object) -> bool:
    return client.info("clients")["blocked_clients"] > 0  # type: ignore[attr-defined]
