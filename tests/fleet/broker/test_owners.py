"""fleet/broker/owners.py: limits of owners act on their backlog; their state is shown."""

import time
from dataclasses import replace
from typing import Any

import pytest
import redis

from fleet import Broker, BrokerUnavailable
from fleet.broker.owners import Owners, OwnerSettings
from fleet.broker.snapshot import OwnerState
from fleet.keys import settings_key
from tests.fleet.fair_queues import Queue, who

ACME, NORTHWIND = OwnerSettings("acme", weight=3), OwnerSettings("northwind")


@pytest.fixture
def owners(broker: Broker) -> Owners:
    return Owners(broker, ["jobs", "reports"])


@pytest.fixture
def queue(client: redis.Redis) -> Queue:
    return Queue(client)


def found(owners: Owners, message: str) -> Any:
    """Return where a message of the queue `jobs` stands."""
    place = owners.find("jobs", message, timeout=5)
    assert place is not None
    return place


def test_owners_that_wait_are_named_the_least_served_first(owners: Owners, queue: Queue) -> None:
    """Those that may be chosen, of every queue once; not those that are paused or idle."""
    queue.put("acme", "a1", "a2")
    queue.put("northwind", "n1")
    queue.put("paused", "p1")
    Queue(queue.client, "reports").put("acme", "r1")
    owners.set([OwnerSettings("paused", is_paused=True), OwnerSettings("idle")], timeout=5)
    assert sorted(owners.waiting_names(most=10, timeout=5)) == ["acme", "northwind"]
    taken = queue.take(1)
    queue.finish(*taken, seconds=5)
    served = {"a": "acme", "n": "northwind"}[who(taken)[0][0]]
    if served == "acme":  # northwind has had less, and nothing else waits
        assert owners.waiting_names(most=1, timeout=5)[0] == "northwind"
    else:
        assert owners.waiting_names(most=10, timeout=5) == ["acme"]


def test_owners_are_seen_as_they_stand(owners: Owners, queue: Queue) -> None:
    """Backlog, running, oldest wait and worker time of each, over all fair queues."""
    queue.put("acme", "a1", "a2", "a3")
    queue.put("northwind", "n1")
    Queue(queue.client, "reports").put("acme", "r1")
    owners.set([ACME, replace(NORTHWIND, max_running=7)], timeout=5)
    taken = queue.take(2)
    assert sorted(who(taken)) == ["a1", "n1"]
    queue.finish(*[one for one in taken if one[0] == "a1"], seconds=2)
    look = owners.snapshot(timeout=5)
    acme, northwind = look.owners["acme"], look.owners["northwind"]
    assert (acme.weight, acme.backlog, acme.running, acme.finished_count) == (3, 3, 0, 1)
    assert (acme.worker_seconds, acme.max_running, acme.state) == (2, None, OwnerState.ELIGIBLE)
    assert acme.oldest_wait_seconds is not None and 0 <= acme.oldest_wait_seconds < 5
    assert (northwind.backlog, northwind.running, northwind.max_running) == (0, 1, 7)
    assert (northwind.oldest_wait_seconds, northwind.state) == (None, OwnerState.IDLE)
    assert look.entitled() == {"acme": 0.75, "northwind": 0.25}
    assert look.received() == {"acme": 1, "northwind": 0}


def test_what_was_set_in_between_is_told_again(owners: Owners) -> None:
    """A pause that begins and ends between two publications leaves no owner paused."""
    owners.keep([ACME], timeout=5)
    owners.set([replace(ACME, is_paused=True)], timeout=5)
    assert owners.keep([ACME], timeout=5)
    assert not owners.snapshot("acme", timeout=5).owners["acme"].is_paused


def test_an_emptied_broker_is_told_again(owners: Owners, client: redis.Redis) -> None:
    """So is one that has lost only one of the queues."""
    owners.keep([replace(ACME, is_paused=True)], timeout=5)
    client.flushdb()
    assert owners.keep([replace(ACME, is_paused=True)], timeout=5)
    assert owners.snapshot("acme", timeout=5).owners["acme"].is_paused
    client.delete(settings_key("reports"))
    assert owners.keep([replace(ACME, is_paused=True)], timeout=5)


def test_what_was_sent_in_part_is_sent_again(
    owners: Owners, client: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mark comes after the settings."""

    def fail(*_args: object) -> None:
        raise ConnectionError("cut")

    monkeypatch.setattr("fleet.broker.broker.PAUSE_AFTER_FAILURE", 0.0)
    with monkeypatch.context() as patched:
        patched.setattr("fleet.broker.owners.scripts.run", fail)
        with pytest.raises(BrokerUnavailable):
            owners.keep([ACME], timeout=5)
    monkeypatch.setattr("fleet.broker.broker.RECONNECT_PATIENCE", 5.0)
    assert owners.keep([ACME], timeout=5)


def test_a_message_is_found_with_what_stands_before_it(owners: Owners, queue: Queue) -> None:
    """Its place in its submission, its owner's backlog, and how many owners come first."""
    queue.put("acme", "a1", "a2", submission="7")
    queue.put("acme", "a3")
    second = found(owners, "a2")
    assert (second.state, second.owner, second.submission) == ("ready", "acme", "7")
    assert (second.place, second.of_submission, second.of_owner) == (2, 2, 3)
    assert (second.owners_before, second.rest_seconds, second.due_seconds) == (0, None, None)
    assert owners.find("jobs", "unknown", timeout=5) is None


def test_a_message_that_may_not_be_chosen_has_no_turn(owners: Owners, queue: Queue) -> None:
    """Its owner is paused, at its cap or resting; it is leased, delayed or behind a lock."""
    queue.put("acme", "a1", "a2")
    owners.set([replace(ACME, max_running=1)], timeout=5)
    queue.take()
    at_cap, leased = found(owners, "a2"), found(owners, "a1")
    assert (at_cap.owners_before, at_cap.running) == (None, 1)
    assert (at_cap.max_running, at_cap.place) == (1, 1)
    assert (leased.state, leased.place) == ("leased", None)
    owners.set([replace(ACME, is_paused=True)], timeout=5)
    paused = found(owners, "a2")
    assert paused.is_paused and paused.owners_before is None
    queue.put("northwind", "n1", delay_seconds=60)
    delayed = found(owners, "n1")
    assert delayed.state == "delayed" and 50 < delayed.due_seconds <= 60
    queue.put("northwind", "n2", "n3", lock="northwind:door")
    assert (who(queue.take()), queue.take()) == (["n2"], [])
    assert found(owners, "n3").state == "parked"


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": "-acme"},
        {"name": "a|b"},
        {"weight": 0},
        {"weight": float("nan")},
        {"max_running": 0},
        {"rate": 0},
        {"rate": float("inf")},
        {"burst": 0.5},
    ],
)
def test_what_a_queue_cannot_keep_is_refused(wrong: dict[str, Any]) -> None:
    """Before anything is sent."""
    with pytest.raises(ValueError, match=r"is no|is not"):
        OwnerSettings(**{"name": "acme", **wrong})


def test_a_hung_broker_costs_the_deadline_once(owners: Owners, client: redis.Redis) -> None:
    """Whatever was asked; the next caller knows at once."""
    client.client_pause(4_000)
    for most, ask in (
        (3.5, lambda: owners.set([ACME], timeout=0.5)),
        (0.5, lambda: owners.snapshot(timeout=0.5)),
        (0.5, lambda: owners.find("jobs", "a1", timeout=0.5)),
        (0.5, lambda: owners.counters("jobs", timeout=0.5)),
        (0.5, lambda: owners.keep([ACME], timeout=0.5)),
    ):
        started = time.monotonic()
        with pytest.raises(BrokerUnavailable):
            ask()
        assert time.monotonic() - started < most
