"""The demo, with its workers killed and its Redis emptied in the middle, judged by the devices."""

import json
import os
import signal
from pathlib import Path

import pytest
import redis

from config.embedded.places import Places
from tests.flows.test_demo import (
    DEMO_SECONDS,
    KEEPER_SECONDS,
    World,
    _until,
    world,  # noqa: F401  the fixture
)
from tests.waiting import wait_for

WORKERS, SLOTS = 2, 4


@pytest.mark.parametrize(
    ("devices", "killed", "flushed"),
    [
        pytest.param(200, True, False, id="kill", marks=pytest.mark.chaos),
        pytest.param(200, False, True, id="flush", marks=pytest.mark.chaos),
        pytest.param(200, True, True, id="many", marks=pytest.mark.chaos),
        pytest.param(100, True, True, id="both", marks=pytest.mark.proof),
    ],
)
def test_every_device_is_verified_all_the_same(
    world: World,  # noqa: F811  the fixture
    *,
    devices: int,
    killed: bool,
    flushed: bool,
) -> None:
    """Only unrecorded work of the killed workers is done again, and the demo reports it."""
    world.environment |= {"FAIRSHIFT_LEASE_SECONDS": "3", "FAIRSHIFT_HEARTBEAT_SECONDS": "1"}
    demo = world.start("--devices", str(devices), "--exit", "--json")
    assert demo.stderr is not None
    _until(demo.stderr, "done,")
    if killed:
        assert _kill_workers(world) == WORKERS
    if flushed:
        _flush(world)
    out, err = demo.communicate(timeout=DEMO_SECONDS)
    verdict = json.loads(out.splitlines()[-1])
    assert demo.returncode == (1 if verdict["doubled"] else 0), err[-5000:]
    assert verdict["verified"] == verdict["runs_recorded"] == devices + 4
    assert verdict["doubled"] <= (WORKERS * SLOTS if killed else 0)
    wait_for(world.is_gone, seconds=KEEPER_SECONDS, what="every process to end")


def _kill_workers(world: World) -> int:  # noqa: F811
    """Kill the worker group: every worker of people's jobs with all its children."""
    killed = 0
    for line in world.processes():
        pid, command = line.split(" ", 1)
        if " --queues jobs " in command and os.getpgid(int(pid)) == int(pid):
            os.killpg(int(pid), signal.SIGKILL)
            killed += 1
    return killed


def _flush(world: World) -> None:  # noqa: F811
    """Empty the demo's Redis."""
    places = Places(Path(world.environment["FAIRSHIFT_STATE_DIR"]))
    redis.Redis(unix_socket_path=str(places.sockets / "redis.sock")).flushall()
