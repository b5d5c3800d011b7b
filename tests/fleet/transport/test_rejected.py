"""Rejected and redelivered messages of a fair queue: one contract, played on both engines."""

from collections.abc import Callable

from fleet.fairness.queue import Given
from tests.fleet.fair_worlds import LEASE, SECOND, World
from tests.fleet.fairness.test_queue import lua, redis, world

__all__ = ["lua", "redis", "world"]


def test_a_rejected_message_goes_behind_its_line(world: World) -> None:
    """It goes behind all others of its priority, and before lower ones."""
    first, second = world.publish("acme", 2, priority=5)
    [low] = world.publish("acme", priority=4)
    [given] = world.take()
    world.give_back(given, is_rejected=True)
    assert world.ids(3) == [second, first, low]


def test_a_rejected_message_waits_for_its_owner_s_other_submissions(world: World) -> None:
    """Rejected again and again, it is not always first: each submission has its turn."""
    [first] = world.publish("acme", submission="a")
    [second] = world.publish("acme", submission="b")
    [given] = world.take()
    assert given.id == first
    world.finish(given, seconds=0)
    world.give_back(given, is_rejected=True)
    assert world.ids() == [second]


def test_a_rejected_message_waits_for_other_owners(world: World) -> None:
    """Its owner pays a millisecond for a message that is rejected without a run."""
    [first] = world.publish("acme")
    [second] = world.publish("globex")
    [given] = world.take()
    assert given.id == first
    world.give_back(given, is_rejected=True)
    assert world.stats("acme").virtual == SECOND // 1_000
    assert world.ids() == [second]


def test_a_rejected_message_may_be_delayed(world: World) -> None:
    """When it is due, it goes behind messages published before its rejection."""
    first, second = world.publish("acme", 2)
    [given] = world.take()
    world.give_back(given, delay=5, is_rejected=True)
    world.wait(5)
    assert world.ids(2) == [second, first]


def test_a_message_that_comes_again_says_so(world: World) -> None:
    """After a rejection, a give-back, a lost worker and a lost reply; not the first time."""
    ways: list[Callable[[Given], object]] = [
        lambda given: world.give_back(given, is_rejected=True),
        world.give_back,
        lambda _: world.wait(LEASE / SECOND + 1),
    ]
    for comes_again in ways:
        world.publish("acme", task="t")
        [first] = world.take()
        comes_again(first)
        [again] = world.take(worker="w2")
        assert (first.is_redelivered, again.is_redelivered) == (False, True)
        world.ack(again, worker="w2")
    world.publish("acme", task="t")
    world.take(is_reply_lost=True)
    [again] = world.take()
    assert again.is_redelivered
