"""fleet/beat/scheduler.py over a scheduler of plain Celery, with lease and ledger in memory."""

import json
import signal
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest
import redis
from celery import Celery
from celery.beat import Scheduler
from django.conf import settings

from fleet.beat import scheduler
from fleet.beat.due import send_id
from fleet.beat.leadership import Lead, LeaseLost, Sending
from fleet.beat.scheduler import LEASE_SECONDS, RENEW_SECONDS, LeaseScheduler, deferred_signals
from tests.flows.world import broker_client

QUEUE = "led"
EVERY = timedelta(hours=1)


@dataclass
class Shared:
    """What beats share: the lease, the ledger, and the clock of both."""

    holder: str = ""
    until: float = 0.0
    seconds: float = 1_000.0
    notes: dict[str, tuple[Sending, bool]] = field(default_factory=dict)
    asked: int = 0

    def monotonic(self) -> float:
        return self.seconds

    def acquire(self, _name: str, holder: str, seconds: float) -> bool:
        self.asked += 1
        if holder != self.holder and self.seconds < self.until:
            return False
        self.holder, self.until = holder, self.seconds + seconds
        return True

    def release(self, _name: str, holder: str) -> None:
        if holder == self.holder:
            self.until = 0.0

    def unsent(self) -> list[Sending]:
        return [sending for sending, is_sent in self.notes.values() if not is_sent]

    def note(self, sending: Sending, *, holder: str) -> bool:
        if holder != self.holder:
            raise LeaseLost
        known = self.notes.get(sending.name)
        if known and known[0].due_at >= sending.due_at and known[1]:
            return False
        self.notes[sending.name] = (sending, False)
        return True

    def sent(self, sending: Sending) -> None:
        self.notes[sending.name] = (sending, True)


class World:
    """Two beats over one Redis, and a clock that the scene moves."""

    def __init__(self, client: redis.Redis) -> None:
        self.client = client
        self.shared = Shared()
        lead = Lead(acquire=self.shared.acquire, release=self.shared.release, ledger=self.shared)
        self.kind = type(
            "Both", (LeaseScheduler, Scheduler), {"lead": lead, "outside_ledger": "own."}
        )
        self.last_at = datetime.now(tz=UTC) - EVERY - timedelta(minutes=5)
        self.one, self.other = self.beat(), self.beat()

    def beat(self, broker: str = settings.REDIS_URL) -> LeaseScheduler:
        """Return a beat with one hourly entry, which came due five minutes ago."""
        app = Celery("led", broker=broker, set_as_current=False)
        app.conf.broker_transport_options = {"fair_queues": []}
        app.conf.result_expires = None
        app.conf.beat_schedule = {
            "hourly": {"task": "any", "schedule": EVERY, "options": {"queue": QUEUE}}
        }
        made = self.kind(app=app)
        merge = made.merge_inplace

        def merged(entries: dict) -> None:
            merge(entries)
            made.schedule["hourly"].last_run_at = self.last_at

        made.merge_inplace = merged
        return made

    @property
    def due_at(self) -> datetime:
        return self.last_at + EVERY

    def sent(self) -> list[str]:
        """Return the ids that were sent since the last call, first to last."""
        texts = self.client.lrange(QUEUE, 0, -1)
        self.client.delete(QUEUE)
        return [json.loads(text)["headers"]["id"] for text in reversed(texts)]


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    with broker_client() as client:
        client.delete(QUEUE)
        made = World(client)
        # The name in this module only: the process has one module `time`.
        clock = SimpleNamespace(monotonic=made.shared.monotonic)
        monkeypatch.setattr(scheduler, "time", clock)
        yield made
        made.sent()


def test_each_round_counts_for_the_health_check(
    world: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Of one that leads, of one that stands by, and of one whose broker is away."""
    alive = tmp_path / "alive"
    monkeypatch.setenv("FAIRSHIFT_ALIVE_FILE", str(alive))
    for beat in (world.one, world.other, world.beat("redis+socket:///nowhere/redis.sock")):
        beat.tick()
        alive.unlink()


def test_the_lease_is_asked_for_at_its_pace(world: World) -> None:
    """At its own pace, however many rounds there are."""
    world.one.tick()
    world.shared.asked = 0
    assert world.one.tick() <= RENEW_SECONDS
    world.one.tick()
    assert world.shared.asked == 0
    world.shared.seconds += RENEW_SECONDS
    world.one.tick()
    assert world.shared.asked == 1


def test_one_that_was_frozen_asks_before_it_sends(world: World) -> None:
    """Another one has led meanwhile, and has sent everything due."""
    world.one.tick()
    assert len(world.sent()) == 1
    world.last_at -= 2 * EVERY  # as if more had come due for the frozen one
    world.one.schedule["hourly"].last_run_at = world.last_at
    world.one._heap = None
    world.shared.seconds += LEASE_SECONDS
    world.other.tick()
    assert world.other.is_leading
    world.one.tick()
    assert not world.one.is_leading
    assert world.sent() == []


def test_one_that_is_frozen_before_a_publish_does_not_publish(world: World) -> None:
    """The lease is looked at after the note as well: a statement may take long."""
    note = world.shared.note

    def slow(sending: Sending, *, holder: str) -> bool:
        world.shared.seconds += LEASE_SECONDS
        return note(sending, holder=holder)

    world.shared.note = slow
    world.one.tick()
    assert world.sent() == []
    world.shared.note = note
    world.other.tick()
    world.one.tick()
    assert world.sent() == [send_id("hourly", world.due_at)]


def test_a_publish_that_failed_is_tried_again(world: World) -> None:
    """Stock beat moves on to the next hour, and the message is lost."""
    lost = world.beat("redis+socket:///nowhere/redis.sock")
    assert lost.tick() == scheduler.RETRY_SECONDS
    lost.app.conf.broker_url = settings.REDIS_URL
    lost.app.conf.broker_write_url = settings.REDIS_URL
    lost.app.pool.force_close_all()
    lost._drop_connection()
    lost.tick()
    assert world.sent() == [send_id("hourly", world.due_at)]


def test_one_that_does_not_reach_the_broker_lets_another_one_try(world: World) -> None:
    """After a lease's length: it may be away for this one only."""
    lost = world.beat("redis+socket:///nowhere/redis.sock")
    for _ in range(9):
        lost.tick()
        world.shared.seconds += scheduler.RETRY_SECONDS
    world.one.tick()
    assert world.sent() == [send_id("hourly", world.due_at)]
    lost.tick()
    assert not lost.is_leading


def test_a_signal_amid_a_round_does_not_close_it(world: World) -> None:
    """Celery closes once more after the round; until then its statement is not disturbed."""
    held = []

    def close_within(*_args: object, **_kwargs: object) -> None:
        world.one.close()
        held.append(world.shared.until > world.shared.seconds)

    world.one.apply_entry = close_within
    world.one.tick()
    assert held == [True]


def stop(*_given: object) -> None:
    raise SystemExit


@pytest.fixture
def _handler() -> Iterator[None]:
    """A handler of SIGTERM that raises, as Celery's does."""
    before = signal.signal(signal.SIGTERM, stop)
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.mark.usefixtures("_handler")
def test_a_signal_amid_a_publish_waits_for_its_note(world: World) -> None:
    """Otherwise the next leader would send it once more; the signal's handler comes back."""
    publish = world.one.send_task

    def publish_and_signal(*args: object, **options: object) -> None:
        publish(*args, **options)
        signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGTERM)

    world.one.send_task = publish_and_signal
    with pytest.raises(SystemExit):
        world.one.tick()
    assert signal.getsignal(signal.SIGTERM) is stop
    assert len(world.sent()) == 1
    assert world.shared.unsent() == []


@pytest.mark.usefixtures("_handler")
def test_another_thread_defers_no_signals() -> None:
    """Nothing is changed there: a beat inside of a worker runs in one."""
    seen = []

    def within() -> None:
        with deferred_signals():
            seen.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=within)
    thread.start()
    thread.join()
    assert seen == [stop]
