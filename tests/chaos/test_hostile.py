"""Bytes in Redis that mean harm (G8): `make chaos WHAT=hostile`, with MESSAGES and ACTS."""

from pathlib import Path
from random import Random
from typing import Any

import pytest

from fleet.keys import queue_key
from tests.chaos.figures import amount, dice
from tests.chaos.mutations import mutated
from tests.chaos.world import World, world
from tests.contrast.malformed import KINDS
from tests.judge import read_task_events
from tests.waiting import wait_for

MESSAGES = amount("MESSAGES", 10_000)
ACTS = amount("ACTS", 40)
CHUNK = 200
STILL_SECONDS = 4.0
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
        client = scene.installation.servers.client()
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


@pytest.mark.chaos
def test_keys_of_wrong_types(tmp_path: Path) -> None:
    """A hand that puts values of other types into the keys stops nothing for long."""
    chance = dice(ACTS=ACTS)
    with world(tmp_path) as scene:
        for _ in range(ACTS):
            _feed(scene, chance)
            key = _put_wrong_type(scene, chance)
            assert _goes_on(scene, seconds=MENDED_SECONDS), key
        _passed(scene)


@pytest.mark.chaos
def test_keys_of_wrong_values(tmp_path: Path) -> None:
    """Other values, or keys that are gone, may stop the queue, and not the workers.

    All goes on once its keys are removed.
    """
    chance = dice(ACTS=ACTS)
    emptied = 0
    with world(tmp_path) as scene:
        for _ in range(ACTS):
            _feed(scene, chance)
            _put_wrong_value(scene, chance)
            if not _goes_on(scene, seconds=STILL_SECONDS):
                emptied += 1
                scene.installation.servers.client().flushall()
        # What was spoilt last may hold up runs that come later.
        scene.installation.servers.client().flushall()
        _passed(scene)
        print(f"{ACTS} acts; the queue was emptied {emptied} times before it went on")


def _feed(scene: World, chance: Random) -> None:
    if scene.open_count() < 40:
        scene.records(40, seconds=0.05, owner=chance.choice(["acme", "globex"]))


def _goes_on(scene: World, *, seconds: float) -> bool:
    """Tell whether the next runs end soon."""
    before = len(scene.look().ended)
    try:
        wait_for(lambda: len(scene.look().ended) > before + 5, seconds=seconds)
    except AssertionError:
        scene.look()
        return False
    return True


def _real_messages(scene: World) -> tuple[list[bytes], list[str]]:
    """Return messages as they wait in Redis, of runs that wait behind a pause and more."""
    client = scene.installation.servers.client()
    ids = scene.records(60, seconds=0.3)
    ids += scene.submit("flows.offered", [{"kind": "row"}] * 10)
    real = [raw for raw in client.hvals(queue_key(QUEUE, "body")) if raw.startswith(b"{")]
    assert len(real) > 10
    return real, ids


def _is_read(scene: World) -> bool:
    scene.look()
    return scene.installation.servers.client().llen(QUEUE) == 0


def _some_key(client: Any, chance: Random) -> bytes:
    """Return a key of the fair queue, or its list."""
    aside = (b":quarantine", b":wrong:")
    keys = [QUEUE.encode()]
    keys += [key for key in client.scan_iter(f"*{{{QUEUE}}}*") if not any(a in key for a in aside)]
    return chance.choice(keys)


def _put_wrong_type(scene: World, chance: Random) -> bytes:
    """Give a key another type; return it."""
    client = scene.installation.servers.client()
    key = _some_key(client, chance)
    kind = client.type(key).decode()
    pipe = client.pipeline()
    pipe.delete(key)
    match chance.choice([other for other in ("string", "hash", "list", "zset") if other != kind]):
        case "string":
            pipe.set(key, "junk")
        case "hash":
            pipe.hset(key, "junk", "junk")
        case "list":
            pipe.rpush(key, "junk")
        case "zset":
            pipe.zadd(key, {"junk": 1})
    pipe.execute()
    return key


def _put_wrong_value(scene: World, chance: Random) -> None:
    """Do to a key what only a broken or hostile hand does, and leave its type."""
    client = scene.installation.servers.client()
    key = _some_key(client, chance)
    kind = client.type(key)
    junk = chance.choice([b"", b"junk", b"\xff\x00", b"-1", b"1e400", b"{}", b"nan"])
    if chance.randrange(2):
        client.delete(key)
    elif kind == b"hash":
        name = chance.choice(client.hkeys(key) or [b"x"])
        client.hset(key, name, junk)
    elif kind == b"zset":
        client.zadd(key, {junk: chance.choice([-1, 0, 1e300])})
    elif kind == b"list":
        client.rpush(key, junk)
    else:
        client.set(key, junk)


def _passed(scene: World) -> None:
    """Have every run end, ordinary ones pass behind, and nothing have run without a row."""
    scene.records(100, seconds=0.01)
    scene.drained(seconds=DRAIN_SECONDS)
    figures = scene.verdict().figures
    assert figures["starts"] == figures["runs"] - scene.installation.count(NEVER_STARTED)
    without_row = [event for event in read_task_events(scene.log.path) if event.run is None]
    assert "flows.offered" not in {event.task for event in without_row}
    assert set(scene.states()) <= {"succeeded", "cancelled"}
