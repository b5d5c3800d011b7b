"""fleet/worker/leasing.py: what a worker on fair queues refuses and enforces."""

import threading
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import redis
from celery import Celery, current_app, signals
from celery.contrib.testing.worker import start_worker
from celery.exceptions import ImproperlyConfigured
from django.conf import settings
from kombu import Queue

from fleet.keys import queue_key
from fleet.refusal import Refused
from fleet.transport import scripts
from fleet.transport.lease_taking import Room
from fleet.transport.leases import Leases
from fleet.versions import TESTED
from fleet.worker.consumer import Consumer
from fleet.worker.leasing import DEFAULT_CONSUMER, FairQueues, leases_of
from tests.jobs.scenes import hinted
from tests.waiting import wait_for

STOCK = "kombu.transport.redis:Transport"
FAIR = {"fair_queues": ["jobs"], "lease_seconds": 1.0}


@pytest.fixture
def app() -> Iterator[Celery]:
    """An app with a fair and a stock queue, and a task that asks for early acknowledgement."""
    with Celery("fair", broker=settings.REDIS_URL, set_as_current=False) as app:
        app.conf.update(
            broker_transport_options=FAIR,
            task_queues=[Queue("jobs"), Queue("system")],
            task_default_queue="jobs",
        )

        @app.task(name="tests.step.early", acks_late=False, shared=False)
        def early() -> None: ...

        app.finalize()
        yield app


@pytest.fixture
def worker(app: Celery) -> Any:
    """The attributes of a worker that the step uses; its pool runs jobs at once."""

    def apply_async(*_args: Any, **options: Any) -> str:
        options["callback"]((False, None, 0.01))
        return "applied"

    pool = SimpleNamespace(apply_async=apply_async)
    return SimpleNamespace(app=app, pool=pool, pool_cls=None, consumer_cls=DEFAULT_CONSUMER)


@pytest.fixture
def started(worker: Any, broker: redis.Redis) -> Iterator[FairQueues]:
    """The step of a worker that has started."""
    step = FairQueues(worker)
    step.create(worker).start(worker)
    yield step
    step.renewal.stop()
    step.renewal.join(200)
    signals.worker_shutdown.disconnect(step._leave)


@pytest.mark.parametrize(
    ("found", "error"),
    [
        ({"broker_transport": STOCK}, "leave it unset"),
        ({"broker_transport": "redis", "broker_url": "sentinel://a:26379"}, "leave it unset"),
        ({"broker_url": "memory://"}, r"use Redis, and call fleet\.use_fair_transport\(\)"),
    ],
    ids=["stock", "without sentinel", "another broker"],
)
def test_another_transport_for_fair_queues_is_refused(
    worker: Any, found: dict[str, str], error: str
) -> None:
    """Otherwise messages would lie in a queue without a worker; the error says what to do."""
    worker.app.conf.update(found)
    with pytest.raises(ImproperlyConfigured, match=error):
        FairQueues(worker).create(worker)


def test_fair_queues_are_not_served_on_untested_versions(
    worker: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Code that Fairshift overrides may have changed; an option accepts that."""
    # Another line of billiard than the installed one is the tested one.
    monkeypatch.setitem(TESTED, "billiard", ("4.0.0",))
    with pytest.raises(Refused, match=r"billiard 4\.3\.\d+ \(tested: 4\.0\.0\)"):
        FairQueues(worker).create(worker)
    worker.app.conf.broker_transport_options = {**FAIR, "allow_untested_versions": True}
    FairQueues(worker).create(worker)


@pytest.mark.parametrize(("queues", "are_late"), [(["jobs", "system"], True), (["system"], False)])
def test_on_fair_queues_everything_is_acknowledged_late(
    worker: Any, queues: list[str], are_late: bool
) -> None:
    """Whatever the task asks: a message acked early belongs to no worker while it runs.

    On stock queues alone tasks are acknowledged as they say: there is nothing to charge.
    """
    worker.app.amqp.queues.select(queues)
    FairQueues(worker).create(worker)
    assert all(task.acks_late for task in worker.app.tasks.values()) == are_late


def test_its_consumer_stays_while_the_broker_is_away(worker: Any) -> None:
    """Durable runs or not. A consumer of the project's own is left alone."""
    step = FairQueues(worker)
    step.create(worker)
    assert worker.consumer_cls is Consumer
    worker.consumer_cls = "elsewhere:Consumer"
    step.create(worker)
    assert worker.consumer_cls == "elsewhere:Consumer"


def took(app: Celery, *, in_pool: bool = False) -> str:
    """Have this process take a message; return the name under which it holds it."""
    current_app.send_task("tests.step.early", queue="jobs", ignore_result=True)
    with leases_of(app) as (leases, client):
        taken = leases.take(
            client, "jobs", Room(1, 0), channel="consumer", lease_us=1_000_000, most=1
        )
        [lease] = taken.messages
        if in_pool:
            leases.start(lease.tag)
        return leases.worker


@pytest.mark.parametrize("way", ["stopped", "terminated"])
def test_leases_are_given_back_at_the_end(
    started: FairQueues, app: Celery, broker: redis.Redis, way: str
) -> None:
    """Others need not wait for the lease: at once, or those of the pool after it has drained."""
    took(app)
    took(app, in_pool=True)
    assert hinted() == []
    assert broker.zcard(queue_key("jobs", "workers")) == 1
    if way == "stopped":
        started.stop(None)
        assert len(hinted()) == 1, "what the pool does not have"
        signals.worker_shutdown.send(sender=None)
    else:
        started.terminate(None)
    assert len(hinted()) == 2
    assert broker.zcard(queue_key("jobs", "workers")) == 0


def test_a_renewal_under_way_brings_no_worker_back(
    started: FairQueues, app: Celery, broker: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker that has left is not counted: its last renewal was before."""
    run_all, begun = scripts.run_all, threading.Event()

    def late(client: redis.Redis, queue: str, acts: Any, **more: Any) -> Any:
        if any(name == "renew" for name, _ in acts):
            begun.set()
            time.sleep(0.2)
        return run_all(client, queue, acts, **more)

    took(app)
    monkeypatch.setattr("fleet.transport.leases.scripts.run_all", late)
    assert begun.wait(100)
    started.terminate(None)
    started.renewal.join(200)
    assert broker.zcard(queue_key("jobs", "workers")) == 0


def test_a_worker_without_a_broker_ends_all_the_same(
    started: FairQueues, app: Celery, caplog: pytest.LogCaptureFixture
) -> None:
    """Its leases end by themselves."""
    app.conf.broker_url = "redis+socket:///nowhere/redis.sock"
    started.terminate(None)
    assert "leases end by themselves" in caplog.text


def test_the_renewal_outlives_a_lost_broker(
    started: FairQueues, app: Celery, broker: redis.Redis
) -> None:
    """It continues beside the loop, in which a solo pool runs its task, over another connection."""
    worker, key = took(app), queue_key("jobs", "workers")
    for _ in range(3):
        before = broker.zscore(key, worker) or 0
        broker.client_kill_filter(_type="normal", skipme=True)
        wait_for(lambda before=before: (broker.zscore(key, worker) or 0) > before)


@pytest.fixture
def _own_app() -> Iterator[None]:
    """The app of the other tests, after Celery's test kit has put another one in its place."""
    before = current_app._get_current_object()
    yield
    before.set_current()
    before.set_default()


@pytest.mark.usefixtures("_own_app")
def test_a_worker_of_celery_s_test_kit_renews_its_leases(app: Celery, broker: redis.Redis) -> None:
    """`celery_worker` of pytest boots without Celery's command: a long task runs once all the same.

    And at its end nothing is left leased, as after any worker's.
    """
    ran: list[float] = []

    @app.task(name="tests.step.long", acks_late=True, shared=False)
    def long() -> None:
        ran.append(time.monotonic())
        time.sleep(3.5)  # longer than a lease

    app.finalize()
    app.conf.worker_prefetch_multiplier = 1  # a worker with room would renew by taking
    with start_worker(
        app, pool="threads", concurrency=1, perform_ping_check=False, queues=["jobs"]
    ):
        long.apply_async(queue="jobs", ignore_result=True)
        wait_for(lambda: ran, what="the task to start")
        other = Leases()
        with leases_of(app) as (_, client):
            for _ in range(10):
                time.sleep(0.3)  # three leases altogether, in which another worker asks
                how = {"channel": "other", "lease_us": 1_000_000, "most": 1}
                assert other.take(client, "jobs", Room(1, 0), **how).messages == []
        wait_for(lambda: broker.hlen(queue_key("jobs", "meta")) == 0, what="the acknowledgement")
        other_key = other.worker
    assert len(ran) == 1
    left = broker.zrange(queue_key("jobs", "workers"), 0, -1)
    assert [name for name in left if name.decode() != other_key] == []
