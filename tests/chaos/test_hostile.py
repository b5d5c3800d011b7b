"""Bytes in Redis that mean harm (G8): `make chaos WHAT=hostile`, with MESSAGES, TYPES and ACTS."""

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest

from fleet.keys import queue_key
from fleet.transport.envelope import parsed
from tests.chaos.figures import amount, dice
from tests.chaos.malformed import KINDS
from tests.chaos.mutations import mutated
from tests.chaos.spoiling import Hand
from tests.chaos.world import World, world
from tests.judge import read_task_events
from tests.waiting import wait_for

MESSAGES = amount("MESSAGES", 10_000)
ACTS = amount("ACTS", 5_000)
TYPES = amount("TYPES", 40)
CHUNK = 200
AT_ONCE = 10
RESTART_EVERY = 8
SHORT_ACTS = 80
MENDED_SECONDS = 10.0
QUEUE = "jobs"
# What is left of a message that was lost is found by the sweep, a few at a time.
DRAIN_SECONDS = 300
NEVER_STARTED = "SELECT count(*) FROM jobs_run WHERE state = 'cancelled' AND started_at IS NULL"


@pytest.mark.chaos
def test_hostile_messages(tmp_path: Path) -> None:
    """No message stops a worker, starts or removes a run, or runs what needs a row without one."""
    chance = dice(MESSAGES=MESSAGES)
    with world(tmp_path) as scene:
        client: Any = scene.installation.servers.client()
        real, ids = _real_messages(scene)
        client.lpush(QUEUE, *KINDS.values())
        for start in range(0, MESSAGES, CHUNK):
            ids += scene.records(20, seconds=0.02, owner=chance.choice(["acme", "globex"]))
            scene.caller.ask("cancel", ids=ids[-2:])
            size = min(CHUNK, MESSAGES - start)
            client.lpush(QUEUE, *(mutated(chance.choice(real), chance, ids) for _ in range(size)))
            wait_for(lambda: _is_read(scene), seconds=60, what="the messages to be read")
        _passed(scene)
        counters = client.hgetall(queue_key(QUEUE, "counters"))
        print({name.decode(): int(number) for name, number in counters.items()})
        assert int(counters[b"quarantined"]) > MESSAGES / 100


@pytest.mark.parametrize(
    "acts",
    [
        pytest.param(SHORT_ACTS, marks=pytest.mark.proof, id="short"),
        pytest.param(ACTS, marks=pytest.mark.chaos, id="long"),
    ],
)
def test_a_hand_in_every_key_and_channel(tmp_path: Path, acts: int) -> None:
    """Other types, other values and bytes on channels, of ours and Kombu's: all go on, by itself.

    Ten wrong things at a time; runs end within 10 s of them. No worker ends, processes that are
    started on what is there come up, and nothing runs without its row or twice.
    """
    chance = dice(ACTS=acts)
    with world(tmp_path) as scene:
        client: Any = scene.installation.servers.client()
        hand = Hand(client, chance)
        for number in range(acts // AT_ONCE):
            _feed(scene, chance)
            wrong = [hand.spoil() for _ in range(AT_ONCE)]
            # The short one is for any machine; `make chaos` measures the promise.
            seconds = MENDED_SECONDS if acts > SHORT_ACTS else 4 * MENDED_SECONDS
            assert _goes_on(scene, seconds=seconds), "\n".join(wrong)
            if number % RESTART_EVERY == RESTART_EVERY - 1:
                name = chance.choice([*scene.workers, "system"])
                scene.processes[name].stop(grace_seconds=30)
                scene.start(name).ready()
        _passed(scene)
        counters = client.hgetall(queue_key(QUEUE, "counters"))
        print(f"{dict(hand.done)}; mended {counters.get(b'mended')!r}")


def _feed(scene: World, chance: Random) -> None:
    if scene.open_count() < 40:
        scene.records(40, seconds=0.05, owner=chance.choice(["acme", "globex"]))


def _goes_on(scene: World, *, seconds: float) -> bool:
    """Tell whether the next runs end in time."""
    before = len(scene.look().ended)
    # All runs that were open before the wrong things may have ended by now.
    scene.records(10, seconds=0.05)
    try:
        wait_for(lambda: len(scene.look().ended) > before + 5, seconds=seconds)
    except AssertionError:
        scene.look()
        return False
    return True


def _real_messages(scene: World) -> tuple[list[bytes], list[str]]:
    """Return messages of runs, as a stock client sends them, and the runs' ids."""
    client: Any = scene.installation.servers.client()
    ids = scene.records(60, seconds=0.3)
    ids += scene.submit("flows.offered", [{"kind": "row"}] * 10)
    real = [json.dumps(parsed(raw)).encode() for raw in client.hvals(queue_key(QUEUE, "body"))]
    assert len(real) > 10
    return real, ids


def _is_read(scene: World) -> bool:
    scene.look()
    return scene.installation.servers.client().llen(QUEUE) == 0


def _passed(scene: World) -> None:
    """Have every run end, then ordinary ones; nothing has run without a row."""
    scene.records(100, seconds=0.01)
    scene.drained(seconds=DRAIN_SECONDS)
    figures = scene.verdict().figures
    assert figures["starts"] == figures["runs"] - scene.installation.count(NEVER_STARTED)
    without_row = [event for event in read_task_events(scene.log.path) if event.run is None]
    assert "flows.offered" not in {event.task for event in without_row}
    assert set(scene.states()) <= {"succeeded", "cancelled"}
