"""A network that loses, delays and cuts: `make chaos WHAT=proxy`, with SECONDS and SEED."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.chaos.figures import amount, dice
from tests.chaos.tasks import noted
from tests.chaos.world import Caller, World
from tests.flows.installation import ENDED, installed
from tests.proxy import NONE, Faults, Proxy
from tests.waiting import wait_for

SECONDS = amount("SECONDS", 240)
SHORT_SECONDS = 12
# Longer than a worker waits for Redis (`socket_timeout`), as the lease of an installation is.
LEASE_SECONDS = 8
HELLO = Faults(lost=1.0, command=b"PUBLISH", hangs=False)
HELLOS_LOST = 10
"""More than two workers retry before Kombu gives up."""
FAULTS = Faults(lost=0.1, cut=0.02, delay_seconds=0.3)
DRAINED_SECONDS = 120


@pytest.fixture
def proxied(tmp_path: Path) -> Iterator[tuple[World, Proxy]]:
    """Two workers, the system's worker and beat, each of which reaches Redis through a proxy."""
    chance = dice(SECONDS=SECONDS)
    with (
        installed(tmp_path, runs=False) as installation,
        Proxy(installation.servers.redis.url, seed=chance.randrange(10**6)) as proxy,
    ):
        installation.urls["REDIS_URL"] = proxy.url
        lease = {"FAIRSHIFT_LEASE_SECONDS": str(LEASE_SECONDS)}
        # With mingle and gossip: they publish after each reconnect.
        scene = World(installation, workers=("one", "two"), slots=2, options=(), **lease)
        try:
            scene.begin()
            yield scene, proxy
        finally:
            scene.caller.kill()
            installation.stop()


@pytest.mark.parametrize(
    "seconds", [SHORT_SECONDS, pytest.param(SECONDS, marks=pytest.mark.chaos, id="long")]
)
def test_workers_outlive_a_bad_network(proxied: tuple[World, Proxy], seconds: int) -> None:
    """No process ends, runs and plain tasks end meanwhile, and all of them have ended afterwards.

    A durable run starts once, and once more for each lost lease; a plain task that the broker has
    confirmed to its caller runs at least once.
    """
    scene, proxy = proxied
    installation = scene.installation
    count = 4 * seconds
    steady = installation.submitter("--count", str(count), "--pause", "0.2", "--seconds", "0.1")
    plain = Caller(installation)
    plain.tell("call", task="chaos.note", count=count, pause=0.2)
    wait_for(lambda: installation.count(ENDED) > 5, what="runs to end")

    proxy.faults = HELLO
    proxy.cut_all()
    lost = proxy.counts["lost"] + HELLOS_LOST
    _until(scene, lambda: proxy.counts["lost"] >= lost)

    ended, notes = installation.count(ENDED), len(noted(installation.folder))
    proxy.faults = FAULTS
    ends_at = time.monotonic() + seconds  # the time is the fault
    _until(scene, lambda: time.monotonic() > ends_at)
    ended_meanwhile = installation.count(ENDED) - ended
    noted_meanwhile = len(noted(installation.folder)) - notes
    proxy.faults = NONE

    steady.waits(seconds=DRAINED_SECONDS + seconds)
    confirmed = (plain.answer() or {})["confirmed"]
    plain.close()
    scene.drained(seconds=DRAINED_SECONDS)
    _until(scene, lambda: set(confirmed) <= set(noted(installation.folder)))
    print(
        f"{seconds} s: {dict(proxy.counts)}; meanwhile {ended_meanwhile} runs and "
        f"{noted_meanwhile} plain tasks ended; {len(confirmed)} of {count} plain calls confirmed"
    )
    figures = scene.verdict().figures
    assert figures["starts"] <= figures["runs"] + figures["lost leases"]
    assert set(scene.states()) == {"succeeded"}
    assert ended_meanwhile and noted_meanwhile


def _until(scene: World, condition: Callable[[], bool]) -> None:
    def reached() -> bool:
        scene.look()
        return condition()

    wait_for(reached, seconds=SECONDS + DRAINED_SECONDS, what="the scene to go on")
