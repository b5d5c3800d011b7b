"""jobs/owners/fair_queue.py: what owners may have acts on what waits, as soon as it is
committed.
"""

import threading
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
import redis
from django.contrib.auth.models import User
from django.db import transaction
from pytest_django import Settings

from fleet import Broker, BrokerUnavailable, OwnerSettings, OwnerSnapshot, OwnerState
from jobs.core.errors import OptionError
from jobs.core.sql import now
from jobs.models import Outbox, Owner, Run
from jobs.owners import fair_queue
from jobs.owners.fair_queue import publish_all_settings, publish_settings_on_commit
from jobs.owners.limits import limit_owner, pause_owner, resume_owner
from jobs.runs import dispatch
from jobs.system.sweep import sweep_hints
from tests.fleet.fair_queues import Queue, who
from tests.jobs.scenes import ask, at_once, hang, living_worker, submitted

pytestmark = pytest.mark.usefixtures("committed")


@pytest.fixture
def queue(broker: redis.Redis) -> Queue:
    return Queue(broker)


@pytest.fixture
def ada(committed: None) -> Iterator[User]:
    ada = User.objects.create(username="ada")
    yield ada
    ada.delete()


def seen(owner: Owner | str) -> OwnerSnapshot:
    """Return how an owner stands in the fair queues."""
    return dispatch.owners().snapshot(str(owner), timeout=5).owners[str(owner)]


def test_what_is_not_named_stays_and_none_lifts_a_limit(acme: Owner, queue: Queue) -> None:
    """In the row as in the queues."""
    queue.put("acme", "a1", "a2", "a3")
    limit_owner(acme, max_running=1)
    queue.take(3)
    limit_owner(acme, max_running=None)
    acme.refresh_from_db()
    assert (acme.weight, acme.max_running) == (3, None)
    assert who(queue.take(3)) == ["a2", "a3"]


def test_a_pause_is_told_and_its_end(acme: Owner, northwind: Owner, queue: Queue) -> None:
    """Of this owner only."""
    queue.put("acme", "a1")
    queue.put("northwind", "n1")
    pause_owner(acme)
    assert (seen(acme).state, who(queue.take(2))) == (OwnerState.PAUSED, ["n1"])
    resume_owner(acme)
    assert who(queue.take(2)) == ["a1"]


def test_a_pause_until_a_time_ends_with_the_sweep_after_it(acme: Owner, queue: Queue) -> None:
    """Nobody else looks at the clock."""
    queue.put("acme", "a1")
    pause_owner(acme, until=now() + timedelta(hours=1))
    sweep_hints()
    assert queue.take() == []
    Owner.objects.filter(pk=acme.pk).update(paused_until=now() - timedelta(seconds=1))
    sweep_hints()
    assert who(queue.take()) == ["a1"]


def test_a_rate_is_spread_with_a_second_at_once(acme: Owner, queue: Queue) -> None:
    """A worker takes several in one call; less than one a second come one by one."""
    queue.put("acme", *(f"a{number}" for number in range(20)))
    limit_owner(acme, rate_limit_per_minute=300)
    assert len(queue.take(20)) == 5
    assert seen(acme).state is OwnerState.RESTING
    limit_owner(acme, rate_limit_per_minute=6)
    assert seen(acme).rate == pytest.approx(0.1)
    assert queue.take(20) == []


def test_a_raised_cap_frees_what_the_rows_keep(acme: Owner) -> None:
    """Without waiting for a sweep."""
    runs = submitted(acme, 3)
    limit_owner(acme, max_running=1)
    ask(living_worker(), runs)
    blocked = Run.objects.filter(blocked_by="cap")
    assert blocked.count() == 2
    limit_owner(acme, max_running=3)
    assert (blocked.count(), Outbox.objects.count()) == (0, 0)


def test_the_sweep_tells_what_was_changed_by_hand(acme: Owner, broker: redis.Redis) -> None:
    """A new owner, a row changed by SQL; once, and again after a minute or a flush."""
    sweep_hints()
    assert seen(acme).weight == 3
    assert not publish_all_settings()
    Owner.objects.filter(pk=acme.pk).update(weight=5)
    Owner.objects.create(slug="northwind", weight=2)
    assert publish_all_settings()
    assert (seen(acme).weight, seen("northwind").weight) == (5, 2)
    broker.flushdb()
    sweep_hints()
    assert (seen(acme).weight, seen("northwind").weight) == (5, 2)


def test_after_a_flush_settings_come_before_hints(acme: Owner, broker: redis.Redis) -> None:
    """Else what is paused would be taken in between."""
    submitted(acme, 2)
    pause_owner(acme)
    broker.flushdb()
    told: list[str] = []
    original = Broker.publish

    def publish(self: Broker, *args: Any, **kwargs: Any) -> None:
        told.append(seen(acme).state)
        original(self, *args, **kwargs)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Broker, "publish", publish)
        assert sweep_hints()["flushed"] == 2
    assert told == ["paused"]


def test_a_broker_that_is_away_keeps_no_commit(
    acme: Owner, broker: redis.Redis, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    """The row has it, and the sweep tells the queues when they are back."""
    hang(broker, settings)
    limit_owner(acme, weight=9)
    pause_owner(acme)
    assert caplog.text.count("the sweep will send the settings of acme") == 2
    with pytest.raises(BrokerUnavailable):
        sweep_hints()
    acme.refresh_from_db()
    assert (acme.weight, acme.is_paused()) == (9, True)
    dispatch.broker.cache_clear()
    settings.FAIRSHIFT = {}
    sweep_hints()
    assert (seen(acme).weight, seen(acme).state) == (9, OwnerState.PAUSED)


def test_an_owner_that_is_gone_has_no_limits_left(acme: Owner, queue: Queue) -> None:
    """Plain calls may still be made in its name."""
    limit_owner(acme, max_running=1)
    queue.put("acme", "a1", "a2")
    with transaction.atomic():
        publish_settings_on_commit(acme)
        acme.delete()
    assert (seen("acme").weight, seen("acme").max_running) == (1, None)


def test_two_changes_are_told_in_the_order_of_their_commits(
    acme: Owner, broker: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever reads a row first tells it first, though the other one is quicker."""
    read, go_on = threading.Event(), threading.Event()
    original = fair_queue._of_row

    def of_row(row: dict[str, Any]) -> OwnerSettings:
        if row["weight"] == 4:
            read.set()
            go_on.wait(100)
        return original(row)

    monkeypatch.setattr(fair_queue, "_of_row", of_row)

    def slow() -> None:
        limit_owner(Owner.objects.get(pk=acme.pk), weight=4)

    def quick() -> None:
        assert read.wait(100)
        threading.Timer(0.3, go_on.set).start()
        limit_owner(Owner.objects.get(pk=acme.pk), weight=5)

    assert at_once(slow, quick) == [None, None]
    assert seen(acme).weight == 5


@pytest.mark.parametrize(
    ("wrong", "option"),
    [
        ({"weight": 0}, "weight: is a whole number from 1 to 1000; not 0"),
        ({"weight": 1001}, "weight: "),
        ({"weight": None}, "weight: "),
        ({"weight": 1.5}, "weight: is a whole number"),
        ({"weight": True}, "weight: is a whole number"),
        ({"max_running": -3}, "is a whole number from 1 to 2147483647, or None for no limit"),
        ({"rate_limit_per_minute": 0}, "rate_limit_per_minute: "),
        ({"rate_limit_per_minute": 2**31}, "rate_limit_per_minute: "),
        ({"run_days": 0}, "run_days: is a whole number from 1 to 3660"),
        ({"failed_run_days": 3661}, "failed_run_days: is a whole number from 1 to 3660"),
        ({"max_runing": 5}, "max_runing: is no limit; max_running may be set"),
        ({"slug": "x"}, "slug: is no limit; weight, max_running"),
        ({"weight": 5, "max_running": -1}, "max_running: "),
        ({"weight": 5, "reason": "x" * 501}, "reason: "),
    ],
)
def test_what_cannot_be_is_refused_by_its_name(
    acme: Owner, wrong: dict[str, Any], option: str
) -> None:
    """And nothing is changed, in the row or in the caller's hand."""
    with pytest.raises(OptionError, match=option):
        limit_owner(acme, **wrong)
    assert (acme.weight, acme.max_running) == (3, None)
    acme.refresh_from_db()
    assert (acme.weight, acme.max_running) == (3, None)
