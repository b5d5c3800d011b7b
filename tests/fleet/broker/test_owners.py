"""fleet/broker/owners.py: limits of owners act on their backlog; their state is shown."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import pytest
import redis
from celery import Celery, current_app

from fleet import Broker, BrokerUnavailable
from fleet.broker.owners import Owners, OwnerSettings
from fleet.broker.snapshot import OwnerState
from fleet.keys import settings_key
from fleet.transport.transport import fair_queues
from tests.fleet.fair_queues import Queue, who
from tests.waiting import wait_for

ACME, NORTHWIND = OwnerSettings("acme", weight=3), OwnerSettings("northwind")


@pytest.fixture
def owners(client: redis.Redis) -> Owners:
    return Owners(Broker(current_app._get_current_object()), ["jobs", "reports"])


@pytest.fixture
def queue(client: redis.Redis) -> Queue:
    return Queue(client)


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


def test_named_owners_are_seen_alone(owners: Owners, queue: Queue) -> None:
    """Whatever their names look like; one that no queue has met is not there."""
    for name in ("acme", "7", "stranger"):
        queue.put(name, f"{name}-1")
    assert list(owners.snapshot("7", timeout=5).owners) == ["7"]
    assert sorted(owners.snapshot("7", "acme", timeout=5).owners) == ["7", "acme"]
    assert list(owners.snapshot("nobody", timeout=5).owners) == []


def test_many_owners_are_seen_by_pages(
    owners: Owners, queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each once, and set by pages, too."""
    monkeypatch.setattr("fleet.broker.owners.PAGE", 7)
    names = [f"o{number:02}" for number in range(40)]
    owners.set([OwnerSettings(name, weight=2) for name in names], timeout=5)
    found = owners.snapshot(timeout=5).owners
    assert sorted(found) == names
    assert {owner.weight for owner in found.values()} == {2}
    assert sorted(owners.snapshot(*names[:20], timeout=5).owners) == names[:20]


def test_a_pause_acts_on_the_backlog_and_ends(owners: Owners, queue: Queue) -> None:
    """Waiting messages wait; leased ones continue."""
    queue.put("acme", "a1", "a2")
    [first] = queue.take()
    owners.set([replace(ACME, is_paused=True)], timeout=5)
    assert queue.take() == []
    acme = owners.snapshot("acme", timeout=5).owners["acme"]
    assert (acme.state, acme.running, acme.backlog) == (OwnerState.PAUSED, 1, 1)
    queue.finish(first, seconds=1)
    owners.set([ACME], timeout=5)
    assert who(queue.take()) == ["a2"]


def test_a_cap_keeps_its_owner_out_of_the_choice(owners: Owners, queue: Queue) -> None:
    """Until one ends, or the cap is raised."""
    queue.put("acme", "a1", "a2", "a3")
    owners.set([replace(ACME, max_running=1)], timeout=5)
    taken = queue.take(3)
    assert who(taken) == ["a1"]
    assert owners.snapshot("acme", timeout=5).owners["acme"].state is OwnerState.AT_CAP
    queue.finish(*taken, seconds=1)
    assert who(queue.take(3)) == ["a2"]
    owners.set([replace(ACME, max_running=2)], timeout=5)
    assert who(queue.take(3)) == ["a3"]


def test_a_rate_lets_its_owner_rest(owners: Owners, queue: Queue) -> None:
    """After its burst; without a rate it continues at once."""
    queue.put("acme", *(f"a{number}" for number in range(5)))
    owners.set([replace(ACME, rate=0.5, burst=2)], timeout=5)
    assert who(queue.take(5)) == ["a0", "a1"]
    acme = owners.snapshot("acme", timeout=5).owners["acme"]
    assert (acme.state, acme.rate) == (OwnerState.RESTING, 0.5)
    assert acme.rest_seconds is not None and 0 < acme.rest_seconds <= 2
    owners.set([ACME], timeout=5)
    assert who(queue.take(5)) == ["a2", "a3", "a4"]


def test_weights_act_on_the_existing_backlog(owners: Owners, queue: Queue) -> None:
    """From the next take on, in proportion."""
    queue.put("acme", *(f"a{number}" for number in range(40)))
    queue.put("northwind", *(f"n{number}" for number in range(40)))
    owners.set([replace(ACME, weight=3), NORTHWIND], timeout=5)
    before = owners.snapshot(timeout=5)
    for _ in range(40):
        queue.finish(*queue.take(), seconds=1)
    received = owners.snapshot(timeout=5).received(since=before)
    assert received["acme"] == pytest.approx(0.75, abs=0.06)


def test_all_queues_are_told_once_a_minute(owners: Owners, client: redis.Redis) -> None:
    """Only once for the same settings, at once for others."""
    assert owners.keep([ACME, NORTHWIND], timeout=5)
    assert not owners.keep([NORTHWIND, ACME], timeout=5)
    assert owners.keep([replace(ACME, weight=4), NORTHWIND], timeout=5)
    assert owners.snapshot("acme", timeout=5).owners["acme"].weight == 4
    assert all(0 < client.ttl(settings_key(queue)) <= 60 for queue in owners.queues)


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
    assert owners.keep([ACME], timeout=5)


def test_a_message_is_found_with_what_stands_before_it(owners: Owners, queue: Queue) -> None:
    """Its place in its submission, its owner's backlog, and how many owners come first."""
    queue.put("acme", "a1", "a2", submission="7")
    queue.put("acme", "a3")
    found = owners.find("jobs", "a2", timeout=5)
    assert found is not None
    assert (found.state, found.owner, found.submission) == ("ready", "acme", "7")
    assert (found.place, found.of_submission, found.of_owner) == (2, 2, 3)
    assert (found.owners_before, found.rest_seconds, found.due_seconds) == (0, None, None)
    assert owners.find("jobs", "unknown", timeout=5) is None


def test_a_message_that_may_not_be_chosen_has_no_turn(owners: Owners, queue: Queue) -> None:
    """Its owner is paused, at its cap or resting; it is leased, delayed or behind a lock."""
    queue.put("acme", "a1", "a2")
    owners.set([replace(ACME, max_running=1)], timeout=5)
    queue.take()
    at_cap = owners.find("jobs", "a2", timeout=5)
    assert at_cap is not None and (at_cap.owners_before, at_cap.running) == (None, 1)
    assert (at_cap.max_running, at_cap.place) == (1, 1)
    leased = owners.find("jobs", "a1", timeout=5)
    assert leased is not None and (leased.state, leased.place) == ("leased", None)
    owners.set([replace(ACME, is_paused=True)], timeout=5)
    paused = owners.find("jobs", "a2", timeout=5)
    assert paused is not None and paused.is_paused and paused.owners_before is None
    queue.put("northwind", "n1", delay_seconds=60)
    delayed = owners.find("jobs", "n1", timeout=5)
    assert delayed is not None and delayed.state == "delayed"
    assert delayed.due_seconds is not None and 50 < delayed.due_seconds <= 60
    queue.put("northwind", "n2", "n3", lock="northwind:door")
    assert (who(queue.take()), queue.take()) == (["n2"], [])
    parked = owners.find("jobs", "n3", timeout=5)
    assert parked is not None and parked.state == "parked"


def test_a_rest_ends_by_itself(owners: Owners, queue: Queue) -> None:
    """It is shown until then."""
    queue.put("acme", "a1", "a2")
    owners.set([replace(ACME, rate=5)], timeout=5)
    queue.take()
    found = owners.find("jobs", "a2", timeout=5)
    assert found is not None and found.rest_seconds is not None and found.rest_seconds <= 0.2
    wait_for(queue.take, what="the owner has rested")


def test_the_numbers_of_a_queue(owners: Owners, queue: Queue) -> None:
    """Gauges and counters."""
    queue.put("acme", "a1", "a2", "a2")
    queue.take()
    numbers = owners.counters("jobs", timeout=5)
    assert (numbers["ready"], numbers["leased"], numbers["duplicates"]) == (1, 1, 1)
    assert owners.counters("reports", timeout=5)["ready"] == 0


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


def test_fair_queues_are_those_of_the_settings() -> None:
    """By the transport's option; without it there are none."""
    options = {"fair_queues": ["jobs", "reports"]}
    with Celery("named", broker_transport_options=options, set_as_current=False) as app:
        assert fair_queues(app) == ("jobs", "reports")
    with Celery("unnamed", set_as_current=False) as app:
        assert fair_queues(app) == ()
