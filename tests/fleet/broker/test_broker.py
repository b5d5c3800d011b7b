"""fleet/broker/broker.py: hints reach Redis in time, or the caller knows that they did not."""

import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import combinations

import pytest
import redis
from celery import Celery

from fleet import HEADER, Broker, BrokerUnavailable
from tests.fleet.hinting import QUEUE, forked, has_worked, hint
from tests.jobs.scenes import hinted, messages
from tests.waiting import wait_for


@pytest.fixture
def away() -> Iterator[Broker]:
    """A broker at an address without a server."""
    with Celery("away", broker="redis://127.0.0.1:1/0", set_as_current=False) as app:
        yield Broker(app)


def unavailable(broker: Broker, *, timeout: float = 0.2, are_in_outbox: bool = False) -> float:
    """Publish in vain; return the seconds until the caller knew."""
    started = time.monotonic()
    with pytest.raises(BrokerUnavailable):
        broker.publish([hint()], timeout=timeout, are_in_outbox=are_in_outbox)
    return time.monotonic() - started


def test_a_hint_is_a_celery_message_of_the_user_s_task(broker: Broker) -> None:
    """Under the run's id, with the facts that scheduling needs, the attempt as `retries`.

    Run and token are the hint's identity: publishing it twice is publishing it once.
    """
    sent = hint(submission=7, attempt=3, token=4)
    broker.publish([sent], timeout=5)
    [message] = messages()
    headers = message["headers"]
    assert (headers["id"], headers["task"], headers["retries"]) == (sent.run_id, "tests.add", 2)
    facts = {"owner": "acme", "submission": 7, "run": sent.run_id, "token": 4}
    assert headers[HEADER] == facts
    assert message["content-type"] == "application/json"


def test_a_higher_priority_is_never_delivered_later(broker: Broker) -> None:
    """The broker has fewer levels than Fairshift has priorities, and keeps their order."""
    sent = {one.run_id: one.priority for one in (hint(priority=n) for n in [*range(10)] * 2)}
    broker.publish([hint(run_id=run_id, priority=n) for run_id, n in sent.items()], timeout=5)
    delivered = [sent[str(run_id)] for run_id in hinted()]
    assert len(delivered) == 20
    assert all(later < earlier + 3 for earlier, later in combinations(delivered, 2))


def test_a_refused_connection_is_told_at_once(away: Broker) -> None:
    """By one class of error, for publishing and for counting."""
    assert unavailable(away) < 1.0
    with pytest.raises(BrokerUnavailable):
        away.backlog(QUEUE, timeout=0.2)


def test_threads_do_not_wait_one_after_the_other(broker: Broker, client: redis.Redis) -> None:
    """A thread that comes while another one waits shares that result, and does not try itself."""
    client.client_pause(4_000)
    took: list[float] = []
    threads = [
        threading.Timer(0.06 * number, lambda: took.append(unavailable(broker, timeout=1.5)))
        for number in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(200)
    assert len(took) == 8
    assert max(took) < 2.5


def test_a_hint_in_the_outbox_waits_a_quarter_second_for_the_first_connection(
    broker: Broker, client: redis.Redis
) -> None:
    """A thread continues to open it, and sends what waits for it: no other caller may come."""
    client.client_pause(4_000)
    assert unavailable(broker, timeout=5, are_in_outbox=True) < 2
    assert unavailable(broker, timeout=5, are_in_outbox=True) < 1
    wait_for(lambda: broker.backlog(QUEUE, timeout=5) == 2, what="the thread to send both")


def test_a_posted_hint_waits_for_the_first_connection_and_its_receipt_comes_later(
    broker: Broker, client: redis.Redis
) -> None:
    """Its caller does not wait, and gets no error: a busy machine may need longer to connect."""
    client.client_pause(4_000)
    began_at = time.monotonic()
    assert [broker.post([hint()], (number,), timeout=5) for number in (1, 2)] == [(), ()]
    assert time.monotonic() - began_at < 3
    wait_for(lambda: len(hinted()) == 2, what="the thread to send both")
    receipts: list[tuple[int, ...]] = []
    wait_for(lambda: receipts.extend(broker.post([hint()], (9,), timeout=5)) or (2,) in receipts)
    assert receipts[:2] == [(1,), (2,)]


def test_what_waits_for_a_connection_that_fails_is_left_to_the_sweep(away: Broker) -> None:
    """The next caller learns of the failure at once."""
    with suppress(BrokerUnavailable):
        away.post([hint()], (1,), timeout=5)
    with pytest.raises(BrokerUnavailable):
        wait_for(lambda: away.post([hint()], (2,), timeout=5), what="the failure to be known")


def test_a_connection_that_could_not_be_opened_is_tried_again(
    broker: Broker, client: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A failure of the thread is not left to a caller that comes when Redis is back."""
    monkeypatch.setattr("fleet.broker.broker.PAUSE_AFTER_FAILURE", 0.0)
    client.client_pause(1_000)
    unavailable(broker, timeout=0.4, are_in_outbox=True)
    wait_for(lambda: broker._opening is None, what="the thread to fail")
    wait_for(client.ping, what="the end of the pause")
    monkeypatch.setattr("fleet.broker.broker.RECONNECT_PATIENCE", 5.0)
    broker.publish([hint()], timeout=5, are_in_outbox=True)
    assert len(hinted()) == 1


@pytest.mark.parametrize("are_in_outbox", [False, True])
def test_it_is_skipped_for_a_while_after_a_failure(
    broker: Broker, client: redis.Redis, monkeypatch: pytest.MonkeyPatch, are_in_outbox: bool
) -> None:
    """Of a caller, or of the thread that opens the connection; even if it is back."""
    monkeypatch.setattr("fleet.broker.broker.PAUSE_AFTER_FAILURE", 60.0)
    client.client_pause(1_000)
    unavailable(broker, timeout=0.4, are_in_outbox=are_in_outbox)
    wait_for(client.ping, what="the end of the pause")
    unavailable(broker, timeout=5, are_in_outbox=are_in_outbox)


def test_a_broker_that_still_hangs_costs_a_caller_little(
    broker: Broker, client: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the pause a thread opens the connection. A caller waits for a tenth of a second.

    Those after it do not wait, and the connection serves them when it is open.
    """
    monkeypatch.setattr("fleet.broker.broker.PAUSE_AFTER_FAILURE", 0.0)
    client.client_pause(4_000)
    unavailable(broker, timeout=0.2)
    assert unavailable(broker, timeout=5) < 2
    assert unavailable(broker, timeout=5) < 1
    wait_for(client.ping, what="the end of the pause")

    def is_published() -> bool:
        with suppress(BrokerUnavailable):
            broker.publish([hint()], timeout=0.5)
            return True
        return False

    wait_for(is_published, what="the connection to serve them")
    assert len(hinted()) == 1


def test_a_fork_has_a_connection_of_its_own(broker: Broker) -> None:
    """Parent and child publish, and neither reads the other's answer."""
    broker.publish([hint()], timeout=5)
    child = forked(lambda: broker.publish([hint() for _ in range(50)], timeout=5))
    broker.publish([hint() for _ in range(50)], timeout=5)
    assert has_worked(child)
    assert broker.backlog(QUEUE, timeout=5) == 101


def test_a_fork_may_happen_while_another_thread_publishes(
    broker: Broker, client: redis.Redis
) -> None:
    """The child publishes at once, though it has copied a lock that no thread will release."""
    client.client_pause(600)
    thread = threading.Thread(target=lambda: broker.publish([hint()], timeout=5))
    thread.start()
    wait_for(broker._lock.locked, what="the thread to hold the lock")
    child = forked(lambda: broker.publish([hint()], timeout=2))
    thread.join(200)
    assert has_worked(child)
    assert broker.backlog(QUEUE, timeout=5) == 2
