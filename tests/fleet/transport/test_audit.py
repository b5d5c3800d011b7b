"""The audit of a fair queue: a page at a time, and owners that are idle for a day leave."""

from collections.abc import Iterator
from uuid import uuid4

import pytest
from redis.exceptions import ResponseError

from fleet.keys import audited_key
from fleet.transport import scripts
from tests.fleet.fair_worlds import LuaQueue, World, connected

DAY = 24 * 3600
MANY = 100_000
MOST_COMMANDS = 4_000
"""Some 3 ms of Redis's time on a small machine."""

client = connected()


@pytest.fixture
def world() -> Iterator[World]:
    """A fair queue under the clock of the scene."""
    world = World(LuaQueue(client, f"fair-{uuid4().hex}"))
    yield world
    lua(world).erase()


def lua(world: World) -> LuaQueue:
    assert isinstance(world.queue, LuaQueue)
    return world.queue


def audit(world: World) -> list[int]:
    """Audit a page now; return how many owners and messages it checked, and how many left."""
    queue = lua(world)
    client.delete(audited_key(queue.name))
    # Not through `run`, which would repair the queue.
    found = client.eval(scripts.source("audit"), 1, queue.name, world.now)
    assert isinstance(found, list)
    return found


def audit_all(world: World) -> int:
    """Audit until all owners were checked; return how many left."""
    left = 0
    while True:
        left += audit(world)[2]
        if client.hget(lua(world).key("state"), "audited_owner") == b"0":
            return left


def owners_of(world: World) -> set[str]:
    return {name.decode() for name in client.zrange(lua(world).key("owners"), 0, -1)}


def commands_of(world: World, act: str, *arguments: object) -> dict[str, int]:
    """Run an act; return how often Redis executed each command for it."""
    queue = lua(world)
    scripts.load(client, [act])
    client.delete(audited_key(queue.name))
    client.config_resetstat()
    scripts.run(client, queue.name, act, *arguments, now=world.now)
    found = client.info("commandstats")
    return {name.removeprefix("cmdstat_"): stat["calls"] for name, stat in found.items()}


def test_no_call_grows_with_idle_owners(world: World) -> None:
    """Each script executes as many commands with 100,000 idle owners as one page needs."""
    world.publish("acme", 3, lock="door")
    world.take(1)
    for first in range(0, MANY, 500):
        facts = [(f"idle-{n}", 2, 0, 0, 0, 1) for n in range(first, first + 500)]
        lua(world).run("owner", world.now, *[value for each in facts for value in each])
    calls = {
        "audit": (),
        "renew": ("w1", 0, 0),
        "take": ("w1", 30_000_000, 1, 1, 0, 1),
        "owners": (0, 500),
        "keep": ("w1",),
    }
    for act, arguments in calls.items():
        counts = commands_of(world, act, *arguments)
        print(f"{act}: {sum(counts.values())} commands")
        assert sum(counts.values()) <= MOST_COMMANDS, (act, counts)
        assert "keys" not in counts


def test_pages_reach_every_message(world: World) -> None:
    """A line that is gone is found among many, though a call checks a page only."""
    world.publish("acme", 1_500)
    world.publish("globex", 2, lock="door")
    world.take(1_501, most=1_501)
    client.delete(*client.keys(lua(world).key("parked", "*")))

    def audit_often() -> None:
        for _ in range(30):
            assert audit(world)[1] < 1_000

    with pytest.raises(ResponseError, match="spoilt: the place of a message"):
        audit_often()


def test_owners_leave_after_an_idle_day(world: World) -> None:
    """Only without work, settings and debt; one that comes back is as it would have been."""
    world.owner("heavy", weight=3)
    world.publish("acme")
    world.publish("globex")
    world.publish("waiting")
    for given in world.take(3):
        world.end(given, seconds=1)
    world.publish("waiting")
    world.wait(DAY - 60)
    assert (audit_all(world), owners_of(world)) == (0, {"acme", "globex", "heavy", "waiting"})
    world.wait(120)
    assert (audit_all(world), owners_of(world)) == (2, {"heavy", "waiting"})
    world.publish("acme")
    assert sorted(world.ids(2)) == ["acme-00005:0", "waiting-00004:0"]
    assert audit_all(world) == 0


def test_an_owner_that_has_had_more_stays(world: World) -> None:
    """While others work in the same busy period, its debt counts when it comes back."""
    world.publish("greedy")
    world.publish("busy", 3)
    for given in world.take(2):
        world.end(given, seconds=30 * DAY if given.id.startswith("greedy") else 1)
    world.wait(DAY + 60)
    assert (audit_all(world), owners_of(world)) == (0, {"greedy", "busy"})
    world.publish("greedy")
    assert world.ids(1) == ["busy-00003:0"]
