"""fleet/broker/unawaited.py: hints are sent without waiting, and the sender learns what arrived."""

import time

import pytest
import redis

from fleet import Broker, BrokerUnavailable
from fleet.broker.unawaited import MOST_UNANSWERED
from tests.fleet.hinting import QUEUE, forked, has_worked, hint
from tests.jobs.scenes import hinted
from tests.waiting import wait_for


def test_a_receipt_comes_back_once_redis_has_confirmed(broker: Broker) -> None:
    """With a later call, in order; a call itself does not wait."""
    sent, receipts = [], []
    for number in range(20):
        sent.append(hint())
        receipts += broker.post([sent[-1]], (number,), timeout=5)
    assert [str(run_id) for run_id in hinted()] == [one.run_id for one in sent]
    wait_for(lambda: receipts.extend(broker.post([hint()], (99,), timeout=5)) or (19,) in receipts)
    assert receipts[:20] == [(number,) for number in range(20)]


def test_a_hung_redis_costs_the_callers_no_time(broker: Broker, client: redis.Redis) -> None:
    """Until the time limit nobody waits; after it the broker counts as away. What was sent may
    arrive, and no receipt says so.
    """
    wait_for(lambda: broker.post([hint()], (1,), timeout=5), what="an open connection")
    client.client_pause(4_000)
    began_at = time.monotonic()
    assert all((2,) not in broker.post([hint()], (2,), timeout=1) for _ in range(10))
    assert time.monotonic() - began_at < 1
    with pytest.raises(BrokerUnavailable):
        wait_for(lambda: broker.post([hint()], (3,), timeout=1) and False, seconds=2)
    began_at = time.monotonic()
    with pytest.raises(BrokerUnavailable):
        broker.post([hint()], (4,), timeout=1)
    assert time.monotonic() - began_at < 0.9


def test_too_many_unanswered_calls_are_waited_for(broker: Broker, client: redis.Redis) -> None:
    """So that a slow Redis slows its callers down, and what they hold stays bounded."""
    wait_for(lambda: broker.post([hint()], (0,), timeout=5), what="an open connection")
    client.client_pause(300)
    receipts = []
    for number in range(MOST_UNANSWERED + 5):
        receipts += broker.post([hint()], (number,), timeout=5)
    assert receipts


def test_a_lost_connection_is_opened_again_at_once(broker: Broker, client: redis.Redis) -> None:
    """The hint of this call arrives; those that were not confirmed get no receipt."""
    broker.post([hint()], (1,), timeout=5)
    wait_for(lambda: len(hinted()) == 1)
    wait_for(lambda: (1,) in broker.post([], (0,), timeout=5) or None, seconds=2)
    client.client_kill_filter(_type="normal", skipme=True)
    last = hint()
    broker.post([last], (2,), timeout=5)
    assert last.run_id in map(str, hinted())


def test_a_refused_call_is_run_again(broker: Broker, client: redis.Redis) -> None:
    """As after a restart of Redis, which forgets its scripts."""
    broker.post([hint()], (1,), timeout=5)
    client.script_flush()
    sent = hint()
    broker.post([sent], (2,), timeout=5)
    receipts: list[tuple[int, ...]] = []
    wait_for(lambda: receipts.extend(broker.post([hint()], (3,), timeout=5)) or (2,) in receipts)
    assert sent.run_id in map(str, hinted())


def test_a_fork_has_a_connection_of_its_own(broker: Broker) -> None:
    """Both may send; a reply goes to the process that asked."""

    def post_twenty() -> None:
        for number in range(20):
            broker.post([hint()], (number,), timeout=5)

    broker.post([hint()], (1,), timeout=5)
    child = forked(post_twenty)
    post_twenty()
    assert has_worked(child)
    wait_for(lambda: broker.backlog(QUEUE, timeout=5) == 41)
