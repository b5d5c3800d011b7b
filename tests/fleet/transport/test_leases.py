"""fleet/transport/leases.py: each operation is sent once, and an unsent one is not lost."""

import os
import signal
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from fleet.transport import leases as module
from fleet.transport import scripts
from fleet.transport.held_leases import BUFFER_US, Load
from fleet.transport.lease_taking import Room, Taken
from fleet.transport.leases import Leases, leases_on
from fleet.transport.pending import FLUSH_SECONDS
from tests.fleet.hinting import forked, has_worked
from tests.jobs.scenes import known
from tests.waiting import wait_for

QUEUE = "jobs"
MINUTE_US = 60_000_000


@pytest.fixture
def leases() -> Leases:
    """The leases of one worker."""
    return Leases()


@pytest.fixture
def away() -> redis.Redis:
    """A client of a broker that is away, which raises at once."""
    at_once = Retry(NoBackoff(), 0)
    return redis.Redis(unix_socket_path="/nowhere/redis.sock", retry=at_once)


def put(broker: redis.Redis, *ids: str, lock: str = "", queue: str = QUEUE) -> None:
    """Publish messages with these ids."""
    groups = [(known, "acme", "", 5, 0, "", lock, "tests.add", "{}") for known in ids]
    scripts.run(broker, queue, "enqueue", *(value for group in groups for value in group))


def taken(
    leases: Leases, client: redis.Redis, slots: int = 10, *, channel: str = "channel"
) -> list[str]:
    """Take messages for this many slots; return their tags."""
    found: Taken = leases.take(
        client, QUEUE, Room(slots, 0), channel=channel, lease_us=MINUTE_US, most=100
    )
    return [lease.tag for lease in found.messages]


def end(leases: Leases, tag: str, *, seconds: float = 0.01) -> None:
    """Finish a message's run, and acknowledge it."""
    leases.finish(tag, seconds)
    leases.ack(tag)


def ids(tags: Sequence[str]) -> list[str]:
    return [tag.partition("#")[0] for tag in tags]


def counters(broker: redis.Redis) -> dict[str, int]:
    """Return the queue's numbers."""
    flat = iter(scripts.run(broker, QUEUE, "counters"))
    return {name.decode(): int(number) for name, number in zip(flat, flat, strict=True)}


def test_the_next_take_says_what_is_unsaid(broker: redis.Redis, leases: Leases) -> None:
    """In one round trip, before it chooses: a run that has just ended makes room."""
    put(broker, "a", "b", lock="door")
    [first] = taken(leases, broker)
    end(leases, first)
    assert ids(taken(leases, broker)) == ["b"]
    assert (known(), leases.has_pending) == (["b"], False)


def test_what_is_given_back_goes_to_its_old_place(broker: redis.Redis, leases: Leases) -> None:
    """Another worker has it next, and the operation is sent without delay."""
    put(broker, *"abc")
    first, _second = taken(leases, broker, 2)
    assert leases.due() == []
    leases.give_back(first)
    assert leases.due() == [QUEUE]
    leases.flush(broker, leases.due())
    assert ids(taken(Leases(), broker)) == ["a", "c"]


def test_what_runs_is_not_given_back_with_its_channel(broker: redis.Redis, leases: Leases) -> None:
    """A connection is lost; the next one's messages, and those in the pool, are not."""
    put(broker, *"abc")
    running, _waiting = taken(leases, broker, 2, channel="lost")
    [other] = taken(leases, broker, channel="next")
    leases.start(running)
    leases.give_back_unstarted("lost")
    leases.flush(broker)
    assert (running in leases, other in leases) == (True, True)
    assert ids(taken(Leases(), broker)) == ["b"]


def test_what_runs_on_takes_a_slot_of_the_next_channel(broker: redis.Redis, leases: Leases) -> None:
    """A worker that has lost its connection is as busy as before, until the run ends."""
    put(broker, "a", "b")
    running, _waiting = taken(leases, broker, 2, channel="lost")
    leases.start(running)
    leases.give_back_unstarted("lost")
    assert leases.load("next") == Load(count=1, buffered=BUFFER_US)
    leases.finish(running, 0.25)
    assert leases.load("next") == Load()
    leases.ack(running)
    assert (leases.load("lost"), leases.load("next")) == (Load(), Load())


def test_a_server_that_took_over_is_told_what_is_held(broker: redis.Redis, leases: Leases) -> None:
    """The first take of a new channel frees messages that the server wrongly takes as held."""
    put(broker, "a", "b", "c")
    done, running = taken(leases, broker, 2)
    leases.start(running)
    # Acknowledged to the old server; the new one does not know.
    leases.remove(done)
    assert ids(taken(leases, broker, 1, channel="next")) == ["a"]
    assert ids(taken(Leases(), broker)) == ["c"]
    assert running in leases


@pytest.mark.parametrize("ends_first", ["the task", "its worker"])
def test_what_is_terminated_is_held_until_it_has_ended(
    broker: redis.Redis, leases: Leases, ends_first: str
) -> None:
    """Celery acknowledges it first; its cap and lock are taken meanwhile, and it is paid for.

    A worker that ends before it does not give it back.
    """
    put(broker, "a")
    [tag] = taken(leases, broker)
    leases.start(tag)
    leases.ack(tag)
    leases.flush(broker)
    assert (tag in leases, known()) == (True, ["a"])
    if ends_first == "the task":
        leases.finish(tag, 1)
        leases.flush(broker)
        assert (tag in leases, counters(broker)["finished"]) == (False, 1)
    else:
        leases.leave(broker)
    assert known() == []


WAYS: dict[str, Callable[[Leases, redis.Redis], Any]] = {
    "take": taken,
    "flush": Leases.flush,
    "flush async": lambda leases, client: leases.flush_async(client, [QUEUE]),
}


@pytest.mark.parametrize("way", WAYS)
def test_what_could_not_be_said_is_said_later(
    broker: redis.Redis, leases: Leases, away: redis.Redis, way: str
) -> None:
    """The broker was away: in the old order, before newer operations."""
    put(broker, *"abc")
    one, two, three = taken(leases, broker)
    end(leases, one)
    leases.give_back(two)
    with pytest.raises(redis.ConnectionError):
        WAYS[way](leases, away)
    assert leases.due() == [QUEUE]
    end(leases, three)
    leases.flush(broker)
    assert (known(), leases.has_pending) == (["b"], False)
    assert counters(broker)["finished"] == 2
    assert ids(taken(leases, broker)) == ["b"]


@pytest.mark.parametrize("loss", ["no answer", "unknown script"])
@pytest.mark.parametrize("way", WAYS)
def test_what_was_said_ahead_and_not_heard_is_said_again(
    broker: redis.Redis, leases: Leases, loss: str, way: str
) -> None:
    """Whatever the loss: before newer operations, and charged once."""
    put(broker, *"abc")
    one, two, _three = taken(leases, broker)
    end(leases, one)
    if loss == "unknown script":
        broker.script_flush()
    leases.flush_async(broker, [QUEUE])
    if loss == "no answer":
        broker.connection_pool.disconnect()
    end(leases, two)
    WAYS[way](leases, broker)
    leases.flush(broker)
    assert (known(), leases.has_pending) == (["c"], False)
    assert counters(broker)["finished"] == 2


def test_the_last_words_are_heard_before_a_worker_leaves(
    broker: redis.Redis, leases: Leases
) -> None:
    """Otherwise acknowledged messages would be given back, and run again."""
    put(broker, *"ab")
    one, two = taken(leases, broker)
    for tag in (one, two):
        leases.start(tag)
        end(leases, tag)
    broker.script_flush()
    leases.flush_async(broker, [QUEUE])
    assert leases.due() == [] and leases.has_pending
    leases.give_back_waiting(broker)
    leases.leave(broker)
    assert known() == []


def test_what_a_hung_server_was_told_is_not_waited_for(broker: redis.Redis, leases: Leases) -> None:
    """Its answer is read when it comes; a worker with nothing to send continues."""
    put(broker, "a")
    [one] = taken(leases, broker)
    end(leases, one)
    pid = broker.info("server")["process_id"]
    os.kill(pid, signal.SIGSTOP)
    try:
        leases.flush_async(broker, [QUEUE])
        time.sleep(2 * FLUSH_SECONDS)  # until an answer would be read
        assert not leases.is_collect_due
    finally:
        os.kill(pid, signal.SIGCONT)
    wait_for(lambda: leases.is_collect_due, seconds=2)
    leases.flush_async(broker, [])
    assert (known(), leases.has_pending) == ([], False)


def test_what_is_refused_for_good_is_raised_with_the_next_words(
    broker: redis.Redis, leases: Leases
) -> None:
    """A full Redis, for example: nothing is lost, and the worker gets the error."""
    put(broker, *"ab")
    for tag in taken(leases, broker):
        end(leases, tag)
    broker.config_set("min-replicas-to-write", 1)
    try:
        leases.flush_async(broker, [QUEUE])
        wait_for(lambda: leases.is_collect_due, what="the answer")
        with pytest.raises(redis.ResponseError):
            leases.flush_async(broker, [QUEUE])
    finally:
        broker.config_set("min-replicas-to-write", 0)
    leases.flush(broker)
    assert known() == []
    assert counters(broker)["finished"] == 2


def test_a_lost_reply_costs_nothing(
    broker: redis.Redis, leases: Leases, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its messages come with the next take; operations sent with it are charged once."""
    put(broker, *"abc")
    [one] = taken(leases, broker, 1)
    end(leases, one, seconds=0.5)

    def cut_off(*call: Any) -> None:
        scripts_run_all(*call)
        raise redis.ConnectionError("reset")

    scripts_run_all = scripts.run_all
    with monkeypatch.context() as patch:
        patch.setattr(module.scripts, "run_all", cut_off)
        with pytest.raises(redis.ConnectionError):
            taken(leases, broker)
    assert ids(taken(leases, broker)) == ["b", "c"]
    numbers = counters(broker)
    assert (numbers["finished"], numbers["acked"], numbers["unconfirmed"]) == (1, 1, 2)


def test_threads_say_everything_once(broker: redis.Redis, leases: Leases) -> None:
    """One thread takes and flushes, as the loop does; others finish and acknowledge."""
    put(broker, *(str(number) for number in range(400)))
    count = 0
    with ThreadPoolExecutor(2) as others:
        while count < 400:
            tags = taken(leases, broker, 7)
            count += len(tags)
            for tag in tags:
                others.submit(end, leases, tag, seconds=0.001)
    leases.flush(broker)
    assert (known(), leases.load("channel")) == ([], Load())
    assert (counters(broker)["finished"], counters(broker)["acked"]) == (400, 400)


def test_a_fork_has_leases_of_its_own(broker: redis.Redis) -> None:
    """The child is another worker, and holds nothing of its parent's."""
    ours = leases_on("a broker")
    put(broker, "a")
    [tag] = taken(ours, broker)
    assert leases_on("a broker") is ours

    def look() -> None:
        theirs = leases_on("a broker")
        assert theirs.worker != ours.worker and tag not in theirs

    assert has_worked(forked(look))
    assert tag in leases_on("a broker")
