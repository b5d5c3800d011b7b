"""Epochs: a queue that was emptied, or is an older copy, gets its facts before it continues."""

from collections.abc import Iterator

import pytest
import redis

from fleet.keys import epoch_channel, queue_key
from fleet.transport import epochs as module
from fleet.transport import scripts
from fleet.transport.envelope import ONCE
from fleet.transport.epochs import set_primer
from fleet.transport.lease_taking import Room
from fleet.transport.leases import Leases
from tests.fleet.hands import publish
from tests.fleet.transport.test_leases import QUEUE, end, taken
from tests.jobs.scenes import known
from tests.waiting import stays_false, wait_for


@pytest.fixture
def leases(broker: redis.Redis) -> Leases:
    """The leases of a worker that knows the queue."""
    made = Leases()
    assert taken(made, broker) == []
    return made


@pytest.fixture
def told() -> Iterator[list[str]]:
    """The calls for an application that primes the queue; here none does."""
    calls: list[str] = []
    set_primer(lambda: calls.append("untold"))
    yield calls
    module._primers.clear()


def eventually(leases: Leases, client: redis.Redis, slots: int = 10) -> list[str]:
    """Take until something comes."""
    return wait_for(lambda: taken(leases, client, slots), seconds=10)


def cap(client: redis.Redis, owner: str, most: int) -> None:
    scripts.run(client, QUEUE, "owner", owner, 1, most, 0, 0, 1)


def tell(client: redis.Redis) -> None:
    """Mark the queue as primed with its owners."""
    epoch, *_ = scripts.run(client, QUEUE, "epoch")
    assert scripts.run(client, QUEUE, "prime", epoch, "told") == 1


def running(client: redis.Redis, owner: str = "acme") -> int:
    rows = scripts.run(client, QUEUE, "owners", 0, 0, owner)
    return int(rows[0][6]) if rows else 0


def ids(tags: list[str]) -> list[str]:
    return [tag.removeprefix(ONCE).partition("#")[0] for tag in tags]


def older(client: redis.Redis) -> dict[bytes, bytes]:
    """Return a copy of all that the server has."""
    return {key: client.dump(key) for key in client.scan_iter()}


def fall_back(client: redis.Redis, copy: dict[bytes, bytes]) -> None:
    """Have the server be as it was then."""
    client.flushall()
    for key, value in copy.items():
        client.restore(key, 0, value)


def test_after_a_flush_what_runs_counts_again(broker: redis.Redis, leases: Leases) -> None:
    """A cap counts running work; its end is charged and makes room, as before the flush."""
    cap(broker, "acme", 2)
    publish("a", "b", "c")
    one, other = eventually(leases, broker)
    leases.start(one)
    leases.start(other)
    broker.flushall()
    leases.renew(broker)
    cap(broker, "acme", 2)
    publish("d")
    assert (running(broker), known()) == (2, ["once:a", "once:b", "once:d"])
    assert stays_false(lambda: taken(leases, broker), seconds=2.5)
    end(leases, one, seconds=0.1)
    assert ids(eventually(leases, broker)) == ["d"]
    assert (running(broker), known()) == (2, ["once:b", "once:d"])


def test_after_a_flush_what_is_held_is_not_lost_with_its_worker(
    broker: redis.Redis, leases: Leases
) -> None:
    """It goes back to the queue, which knows it again, body and all."""
    publish("a")
    [tag] = eventually(leases, broker)
    broker.flushall()
    leases.renew(broker)
    leases.leave(broker)
    assert ids(eventually(Leases(), broker)) == ["a"]
    [body] = broker.hvals(queue_key(QUEUE, "body"))
    assert b"tests.add" in body
    assert tag not in leases


def test_what_waits_in_an_older_copy_and_runs_here_is_not_taken_twice(
    broker: redis.Redis, leases: Leases
) -> None:
    """It is leased again to its holder."""
    publish("a", "b")
    copy = older(broker)
    one, *_ = eventually(leases, broker, 1)
    fall_back(broker, copy)
    assert ids(eventually(Leases(), broker, 1)) == ["a"], "nobody has said that it runs"
    fall_back(broker, copy)
    leases.renew(broker)
    assert ids(eventually(Leases(), broker)) == ["b"]
    assert one in leases


def test_an_older_copy_is_known_by_what_it_has_not_heard_of(
    broker: redis.Redis, leases: Leases
) -> None:
    """Its epoch is ours, and our leases are younger than it."""
    publish("a", "b", "c")
    [first] = eventually(leases, broker, 1)
    before, *_ = scripts.run(broker, QUEUE, "epoch")
    copy = older(broker)
    [second] = eventually(leases, broker, 1)
    fall_back(broker, copy)
    assert ids(eventually(leases, broker)) == ["c"]
    after, *_ = scripts.run(broker, QUEUE, "epoch")
    assert after > before
    assert running(broker) == 3
    assert (first in leases, second in leases) == (True, True)


def test_a_copy_of_an_older_epoch_is_told_again(broker: redis.Redis, leases: Leases) -> None:
    """Changes since that copy was made are not in it."""
    copy = older(broker)
    broker.flushall()
    leases.renew(broker)
    fall_back(broker, copy)
    old, is_told, _ = scripts.run(broker, QUEUE, "epoch")
    assert is_told
    leases.renew(broker)
    assert scripts.run(broker, QUEUE, "epoch")[0] > old


def test_a_queue_that_has_forgotten_gives_nothing_until_it_is_told(
    broker: redis.Redis, leases: Leases, told: list[str]
) -> None:
    """Takes and renewals call the application that can prime it; the worker looks again soon."""
    broker.flushall()
    publish("a")
    found = leases.take(broker, QUEUE, Room(1, 0), channel="channel", lease_us=1, most=1)
    assert (found.messages, found.sleep_seconds) == ([], 0.1)
    leases.renew(broker)
    assert len(told) >= 2
    tell(broker)
    assert ids(eventually(leases, broker)) == ["a"]
    told.clear()
    leases.renew(broker)
    assert told == []


def test_who_is_told_waits_for_what_others_hold(broker: redis.Redis, leases: Leases) -> None:
    """Workers that knew the last epoch have a second to declare what they hold."""
    broker.flushall()
    leases.renew(broker)
    publish("a")
    assert taken(Leases(), broker) == []
    assert ids(eventually(leases, broker)) == ["a"]


def test_a_queue_that_nobody_tells_anything_goes_on(
    broker: redis.Redis, leases: Leases, told: list[str]
) -> None:
    """After two seconds, with what it has."""
    broker.flushall()
    publish("a")
    assert ids(eventually(leases, broker)) == ["a"]
    assert told


def test_a_new_epoch_is_heard_of(broker: redis.Redis, leases: Leases) -> None:
    """Its channel reaches workers that sleep or are full, and a sleeper is woken."""
    with broker.pubsub() as heard:
        heard.subscribe(epoch_channel(QUEUE))
        heard.get_message(timeout=5)
        broker.flushall()
        publish("a")
        message = wait_for(lambda: heard.get_message(timeout=1), seconds=5)
    assert int(message["data"]) == scripts.run(broker, QUEUE, "epoch")[0]
    leases.renew(broker)
    assert broker.llen(queue_key(QUEUE, "wake")) == 1


def test_numbers_of_leases_do_not_come_again(broker: redis.Redis, leases: Leases) -> None:
    """Otherwise a lease from before a flush and one from after it would have one name."""
    publish("a")
    [tag] = eventually(leases, broker)
    broker.flushall()
    publish("a")
    leases.remove(tag)
    [again] = eventually(leases, broker)
    assert int(again.partition("#")[2]) > int(tag.partition("#")[2])
