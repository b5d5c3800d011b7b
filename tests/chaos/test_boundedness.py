"""Nothing grows (G22): `make chaos WHAT=boundedness`, with RUNS."""

import os
import time
from pathlib import Path

import pytest

from tests.chaos.figures import amount, dice
from tests.chaos.world import World, world
from tests.waiting import wait_for

RUNS = amount("RUNS", 100_000)
# Caches, pools and children reach their size; it is 2,000 runs of each child at least.
WARM_RUNS = max(10_000, RUNS // 5)
CHUNK = 1_000
MOST_OPEN = 10_000
DRAIN_SECONDS = 600
PAGE = os.sysconf("SC_PAGE_SIZE")
MEGABYTE = 1024 * 1024
# Of 100,000 runs. Less of them cannot show less.
GROWTH_BYTES = 10 * MEGABYTE * max(1, RUNS // 100_000)
KEYS = 10
REDIS_BYTES = MEGABYTE


@pytest.mark.chaos
def test_boundedness(tmp_path: Path) -> None:
    """After a drain Redis has the keys and memory that it had, and each process its memory."""
    dice(RUNS=RUNS, WARM_RUNS=WARM_RUNS)
    began_at = time.monotonic()
    with world(tmp_path, slots=2, FAIRSHIFT_LEASE_SECONDS="30") as scene:
        _pass(scene, WARM_RUNS)
        before = _sizes(scene), _redis(scene)
        _pass(scene, RUNS)
        after = _sizes(scene), _redis(scene)
        grown = {name: size - before[0].get(name, 0) for name, size in after[0].items()}
        keys, room = (now - then for now, then in zip(after[1], before[1], strict=True))
        print(f"{RUNS} runs in {time.monotonic() - began_at:.0f} s, after {WARM_RUNS} to warm up")
        print(f"Redis: {after[1][0]} keys ({keys:+}), {after[1][1] / MEGABYTE:.1f} MB ({room:+} B)")
        for name, more in grown.items():
            print(f"{name}: {after[0][name] / MEGABYTE:.1f} MB ({more / MEGABYTE:+.1f})")
        figures = scene.verdict().figures
        assert figures["starts"] == figures["runs"] == WARM_RUNS + RUNS
        assert after[0].keys() == before[0].keys(), "a process was replaced"
        assert keys <= KEYS
        assert room <= REDIS_BYTES
        assert max(grown.values()) <= GROWTH_BYTES


def _pass(scene: World, runs: int) -> None:
    """Submit `count` runs, of both owners, and wait for their end."""
    for start in range(0, runs, CHUNK):
        owner = ("acme", "globex")[start // CHUNK % 2]
        scene.records(min(CHUNK, runs - start), seconds=0, owner=owner)
        scene.until(lambda: scene.open_count() <= MOST_OPEN)
    scene.drained(seconds=DRAIN_SECONDS)


def _sizes(scene: World) -> dict[str, int]:
    """Return the resident bytes of each process and each child."""
    pids = {}
    for name, process in scene.processes.items():
        pids[f"{name} ({process.pid})"] = process.pid
        pids |= {f"{name}, child ({pid})": pid for pid in process.children()}
    return {name: _resident(pid) for name, pid in pids.items()}


def _resident(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE


def _redis(scene: World) -> tuple[int, int]:
    """Return the number of keys and the bytes in use, once nothing waits or is leased."""
    client = scene.installation.servers.client()
    wait_for(lambda: not client.hlen("fairshift:{jobs}:meta"), seconds=60, what="the last hint")
    return client.dbsize(), int(client.info("memory")["used_memory"])
