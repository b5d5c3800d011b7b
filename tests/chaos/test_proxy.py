"""A network that loses, delays and cuts: `make chaos WHAT=proxy`, with SECONDS and SEED."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.chaos.figures import amount, dice
from tests.chaos.tasks import noted
from tests.chaos.world import Caller, World, world
from tests.flows.installation import ENDED
from tests.flows.processes import Process
from tests.proxy import NONE, Faults, Proxy

SECONDS = amount("SECONDS", 240)
SHORT_SECONDS = 8
# Longer than a worker waits for Redis (`socket_timeout`), as the lease of an installation is.
LEASE_SECONDS = 10
GONE = Faults(lost=1.0, hangs=False)
SLOW = Faults(delay_seconds=0.25)
"""A restart takes longer than a lease, each of its steps less."""
HELLO = Faults(lost=1.0, command=b"PUBLISH", hangs=False)
HELLOS_LOST = 6
"""Kombu gives up after two, and there are two workers."""
BAD = Faults(lost=0.1, cut=0.02, delay_seconds=0.3)
"""A restart of a worker's consumer needs some 60 replies: it would hardly get through one."""
POOR = Faults(lost=0.003, cut=0.001, delay_seconds=0.01)
DRAINED_SECONDS = 120


@pytest.fixture
def proxied(tmp_path: Path) -> Iterator[tuple[World, Proxy]]:
    """Two workers, the system's worker and beat, each of which reaches Redis through a proxy."""
    chance = dice(SECONDS=SECONDS)
    lease: dict[str, Any] = {"FAIRSHIFT_LEASE_SECONDS": str(LEASE_SECONDS)}
    # With mingle and gossip: they publish after each reconnect.
    with world(tmp_path, slots=2, options=(), begins=False, **lease) as scene:
        urls = scene.installation.urls
        with Proxy(urls["REDIS_URL"], seed=chance.randrange(10**6)) as proxy:
            urls["REDIS_URL"] = proxy.url
            scene.begin()
            yield scene, proxy


@pytest.fixture
def plain(proxied: tuple[World, Proxy]) -> Iterator[Caller]:
    """A process that calls plain tasks through the same proxy."""
    caller = Caller(proxied[0].installation)
    yield caller
    caller.kill()


@pytest.mark.parametrize(
    "seconds",
    [
        pytest.param(SHORT_SECONDS, marks=pytest.mark.proof, id="short"),
        pytest.param(SECONDS, marks=pytest.mark.chaos, id="long"),
    ],
)
def test_workers_outlive_a_bad_network(
    proxied: tuple[World, Proxy], plain: Caller, seconds: int
) -> None:
    """No process ends; runs and plain tasks end over a poor network; all have ended afterwards.

    A durable run starts once, and once more for each lost lease; a plain task that the broker has
    confirmed to its caller runs at least once.
    """
    scene, proxy = proxied
    installation = scene.installation
    count = 4 * seconds
    steady = installation.submitter("--count", str(count), "--pause", "0.2", "--seconds", "0.1")
    plain.tell("call", task="chaos.note", count=count, pause=0.2)
    scene.until(lambda: installation.count(ENDED) > 5)

    proxy.faults = HELLO
    proxy.cut_all()
    lost = proxy.counts["lost"] + HELLOS_LOST
    scene.until(lambda: proxy.counts["lost"] >= lost)

    proxy.faults = NONE
    ended, notes = _done(scene)
    scene.until(lambda: _done(scene)[0] > ended and _done(scene)[1] > notes)
    ended, notes = _done(scene)
    proxy.faults = BAD
    ends_at = time.monotonic() + seconds  # the time is the fault
    scene.until(lambda: time.monotonic() > ends_at)
    runs, plain_tasks = _done(scene)
    print(f"{seconds} s: {runs - ended} runs and {plain_tasks - notes} plain tasks ended; ", end="")
    assert runs > ended or seconds == SHORT_SECONDS
    proxy.faults = POOR
    scene.until(lambda: _done(scene)[0] > runs and _done(scene)[1] > plain_tasks)
    proxy.faults = NONE

    steady.waits(seconds=DRAINED_SECONDS + seconds)
    answer = plain.answer()
    assert answer, "the caller of plain tasks ended"
    scene.drained(seconds=DRAINED_SECONDS)
    scene.until(lambda: set(answer["confirmed"]) <= set(noted(installation.folder)))
    print(f"{dict(proxy.counts)}; {len(answer['confirmed'])} of {count}, {answer['errors']}")
    figures = scene.verdict().figures
    assert figures["starts"] <= figures["runs"] + figures["lost leases"]
    assert set(scene.states()) == {"succeeded"}


@pytest.mark.chaos
def test_heartbeats_go_on_while_workers_connect(proxied: tuple[World, Proxy]) -> None:
    """Over a slow network a restart takes longer than a lease, and the lease does not end.

    A consumer restarts after a minute without Redis.
    """
    scene, proxy = proxied
    workers = [scene.processes[name] for name in scene.workers]
    before = [_greeted(worker) for worker in workers]
    proxy.faults = GONE
    proxy.cut_all()
    for worker in workers:
        scene.until(lambda w=worker: _count(w, "the consumer begins anew") > 0)  # type: ignore[misc]
    proxy.faults = SLOW
    for worker, count in zip(workers, before, strict=True):
        scene.until(lambda w=worker, c=count: _greeted(w) > c)  # type: ignore[misc]
    assert [_count(worker, "no heartbeat") for worker in workers] == [0, 0]


def _greeted(worker: Process) -> int:
    """Return how often a worker has finished its hello to the others."""
    return _count(worker, "mingle: all alone") + _count(worker, "mingle: sync complete")


def _count(worker: Process, text: str) -> int:
    return worker.log.read_text(errors="replace").count(text)


def _done(scene: World) -> tuple[int, int]:
    """Return how many runs and how many plain tasks have ended."""
    installation = scene.installation
    return installation.count(ENDED), len(noted(installation.folder))
