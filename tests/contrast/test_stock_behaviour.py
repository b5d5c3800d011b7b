"""What people know of Celery holds on a fair queue: each scene on a real worker."""

import itertools
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.conf import settings

from fleet.transport import scripts
from tests.contrast.caller import Caller
from tests.contrast.installation import contrast
from tests.control import EventLog
from tests.waiting import wait_for

FAIR = ("", "-b", "-warm", "-cold", "-scale", "-bare", "-limit")
SLOTS = 2


class World(Caller):
    """One worker with two slots, on two fair queues and a stock one."""

    worker: subprocess.Popen[bytes]

    def busy(self, seconds: float) -> list[str]:
        """Take all slots of the worker, for so long; return the ids of what does."""
        names = [f"busy-{time.time()}-{n}" for n in range(SLOTS)]
        ids = [self.call("nap", name, seconds).id for name in names]
        self.await_line("start", *names)
        return ids

    @contextmanager
    def all_busy(self) -> Iterator[None]:
        """Keep all slots of the worker while the scene publishes, however long that takes."""
        gate = self.scene.folder / f"gate-{time.time()}"
        names = [f"{gate.name}-{n}" for n in range(SLOTS)]
        for name in names:
            self.call("hold", name, str(gate))
        self.await_line("start", *names)
        try:
            yield
        finally:
            gate.touch()


@pytest.fixture(scope="module")
def began(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    broker = settings.REDIS_URL
    path = broker.partition("?")[0]
    environ = {
        "CONTRAST_BACKEND": f"{path}?virtual_host=9",
        "CONTRAST_FAIR": ",".join(FAIR),
        "AUTOSCALE_KEEPALIVE": "1",
    }
    with contrast("fair", tmp_path_factory.mktemp("stock"), broker, **environ) as scene:
        world = World(scene, fair=[scene.queue + more for more in FAIR])
        queues = ",".join(scene.queue + more for more in ("", "-b", "-stock"))
        world.worker = scene.worker(slots=SLOTS, queues=queues)
        yield world
        world.close()


@pytest.fixture
def world(began: World) -> Iterator[World]:
    """The worker, with nothing to do before and after each scene."""
    began.await_idle()
    yield began
    assert began.worker.poll() is None


# --- calls -----------------------------------------------------------------------------------


def test_no_queue_starves_behind_another_s_backlog(world: World) -> None:
    """A worker on several queues serves each in its turn, stock ones too; each returns results."""
    results = [world.call("add", 1, n, more=more) for n, more in enumerate(("", "-b", "-stock"))]
    assert [result.get(timeout=300) for result in results] == [1, 2, 3]
    few = [f"few{more}-{number}" for more in ("-b", "-stock") for number in range(3)]
    with world.all_busy():
        for number in range(150):
            world.call("run", f"many-{number}", 0.01)
        for name in few:
            world.call("run", name, 0.01, more=name.removeprefix("few").rpartition("-")[0])
    world.await_line("end", *few, "many-149", seconds=30)
    starts = [name for name in world.scene.said("start") if name.startswith(("few", "many"))]
    assert max(starts.index(name) for name in few) < 100


@pytest.mark.parametrize("how", ["countdown", "eta"])
def test_what_is_due_later_waits_in_redis(world: World, how: str) -> None:
    """Not before its time, half a second late at most; meanwhile no worker holds it."""
    due = datetime.now(UTC) + timedelta(seconds=1)
    world.call("run", how, **({"eta": due} if how == "eta" else {"countdown": 1}))
    assert (world.count("delayed"), world.count("leased"), world.count("ready")) == (1, 0, 0)
    assert world.seen(world.worker, "scheduled") == []
    assert world.seen(world.worker, "reserved") == []
    [start] = world.await_line("start", how)
    assert 0 <= start.at - due.timestamp() <= 0.5


def test_priority_0_comes_first(world: World) -> None:
    """As with stock on Redis, which knows four levels of it: here each of ten is one."""
    with world.all_busy():
        for priority in (9, 6, 3, 1, 0, 2):
            world.call("nap", f"priority-{priority}", 0.3, priority=priority)
    starts = world.await_line("start", *(f"priority-{n}" for n in (0, 1, 2, 3, 6, 9)))
    pairs = [sorted(line.at for line in starts[n : n + SLOTS]) for n in range(0, 6, SLOTS)]
    in_order = [at for pair in pairs for at in pair]
    assert in_order == sorted(in_order)


# --- ends ------------------------------------------------------------------------------------


def test_what_runs_is_terminated(world: World) -> None:
    """Its process ends, it is not run again, and its owner pays for what it had."""
    owner = {"fairshift": {"owner": "ended"}}
    result = world.call("nap", "terminated", 30, headers=owner)
    world.await_line("start", "terminated")
    time.sleep(0.5)  # which it is charged for
    world.app.control.revoke(result.id, terminate=True)
    world.await_idle()
    assert world.scene.said("start").count("terminated") == 1
    assert "terminated" not in world.scene.said("end")
    [row] = scripts.run(world.scene.client, world.scene.queue, "owners", 0, 0, "ended")
    running, finished, served = float(row[6]), float(row[7]), float(row[8])
    assert (running, finished) == (0, 1) and served >= 400_000


def test_early_acknowledgement_is_late(world: World) -> None:
    """A task that asks for it is held until it has ended, as all others are."""
    world.call("early", "early", 0.6)
    world.await_line("start", "early")
    time.sleep(0.2)  # time for an acknowledgement to be sent
    assert world.count("leased") == 1
    assert "early" not in world.scene.said("end")


# --- sight -----------------------------------------------------------------------------------


def test_the_length_of_the_list_is_the_backlog(world: World) -> None:
    """What is ready counts; what runs or is delayed does not. So says the broker's own answer."""
    running = world.busy(60)
    for n in range(5):
        world.call("nap", f"waits-{n}", 0, priority=n)
    world.call("nap", "later", 0, countdown=60)
    assert world.scene.client.llen(world.scene.queue) == 5
    with world.app.connection_for_write() as connection:
        declared = connection.default_channel.queue_declare(world.scene.queue, passive=True)
        assert declared.message_count == 5
    _purge(world, expected=6)
    world.app.control.revoke(running, terminate=True)


def _purge(world: World, *, expected: int) -> None:
    """Removes what waits, delayed messages too; what runs stays, and ends."""
    running = world.count("leased")
    command = ["-m", "celery", "-A", "tests.contrast.app", "purge", "-f", "-Q", world.scene.queue]
    done = subprocess.run(
        [sys.executable, *command], env=world.scene._environ, capture_output=True, check=True
    )
    assert f"Purged {expected} messages" in done.stdout.decode()
    assert (world.count("ready"), world.count("delayed")) == (0, 0)
    assert world.count("messages") == world.count("leased") == running


# --- commands --------------------------------------------------------------------------------


def test_the_pool_grows_and_shrinks(world: World) -> None:
    """The window goes with it: as many run at once as there are processes, and no more are held.

    As with stock, the new process comes within five seconds, or when another one ends.
    """
    running = world.busy(60)
    world.command(world.worker, "pool_grow", 1)
    world.app.control.revoke(running, terminate=True)
    pool = lambda: world.seen(world.worker, "stats")["pool"]["processes"]  # noqa: E731
    wait_for(lambda: len(pool()) == SLOTS + 1)
    for n in range(5):
        world.call("nap", f"grown-{n}", 0.6, more="-b")
    world.await_line("start", "grown-0", "grown-1", "grown-2")
    assert (world.count("leased", "-b"), world.count("ready", "-b")) == (SLOTS + 1, 2)
    wait_for(lambda: world.count("messages", "-b") == 0)
    world.command(world.worker, "pool_shrink", 1)
    wait_for(lambda: len(pool()) == SLOTS)
    for n in range(4):
        world.call("nap", f"shrunk-{n}", 0.4, more="-b")
    world.await_line("start", "shrunk-0", "shrunk-1")
    assert (world.count("leased", "-b"), world.count("ready", "-b")) == (SLOTS, 2)
    wait_for(lambda: world.count("messages", "-b") == 0)


def test_a_rate_limit_of_celerys(world: World) -> None:
    """Each worker starts no more than that: it holds what waits for it, as stock does."""
    world.command(world.worker, "rate_limit", "contrast.limited", "4/s")
    for n in range(4):
        world.call("limited", f"limited-{n}")
    lines = world.await_line("end", *(f"limited-{n}" for n in range(4)))
    at = sorted(line.at for line in lines)
    assert min(later - one for one, later in itertools.pairwise(at)) > 0.2
    world.command(world.worker, "rate_limit", "contrast.limited", "0")


# --- stock clients ---------------------------------------------------------------------------


def test_a_stock_client_is_adopted(world: World) -> None:
    """What it pushes, at any priority, starts within 5.5 s on an idle worker; the next in 1.5 s."""
    for name, most in (("first", 5.5), ("next", 1.5)):
        code = (
            "from tests.contrast.app import _log, run\n"
            f"for p in (9, 6, 3, 0): run.apply_async((f'{name}-{{p}}',), priority=p)\n"
            f"_log('sent', {name!r})"
        )
        environ = {**world.scene._environ, "CONTRAST": "stock"}
        subprocess.run([sys.executable, "-c", code], env=environ, check=True)
        [sent] = world.await_line("sent", name)
        starts = world.await_line("start", *(f"{name}-{p}" for p in (0, 3, 6, 9)))
        assert max(line.at for line in starts) - sent.at <= most
    assert not any(
        world.scene.client.llen(f"{world.scene.queue}{step}")
        for step in ("", "\x06\x163", "\x06\x166", "\x06\x169")
    )


# --- other workers ---------------------------------------------------------------------------


@contextmanager
def _worker(
    world: World, *options: str, more: str, **how: Any
) -> Iterator[subprocess.Popen[bytes]]:
    """Another worker, on a queue of its own."""
    worker = world.scene.worker(*options, queues=world.scene.queue + more, **how)
    yield worker
    if worker.poll() is None:
        world.scene.kill(worker)


@contextmanager
def _joined(world: World, *, more: str) -> Iterator[None]:
    """The worker serves this queue too, until nothing is left in it."""
    queue = world.scene.queue + more
    world.command(world.worker, "add_consumer", queue)
    yield
    wait_for(lambda: world.count("messages", more) == 0, what="an idle queue")
    world.command(world.worker, "cancel_consumer", queue)


def _buffer(world: World, *, more: str, seconds: float) -> list[str]:
    """Have a worker run what is longer than was known, and give it more; return the names of that.

    The queue knows that `run` is short: what is one at a time does not come to be known at once.
    """
    learned = [f"learned{more}-{n}" for n in range(5)]
    for name in learned:
        world.call("run", name, more=more)
    world.await_line("end", *learned)
    wait_for(lambda: world.count("messages", more) == 0)
    world.call("run", f"long{more}", seconds, more=more)
    world.await_line("start", f"long{more}")
    shorts = [f"short{more}-{n}" for n in range(5)]
    for name in shorts:
        world.call("run", name, more=more)
    return shorts


@pytest.mark.parametrize("more", ["-limit", "-plain"])
def test_a_hard_limit_fails_a_task_once(world: World, more: str) -> None:
    """One call of its errback and one `task-failed`: stock Celery has two of each."""
    log = EventLog(world.app)
    with _worker(world, "--task-events", more=more):
        # It sends events once it knows that a monitor listens.
        probes: list[str] = []
        wait_for(lambda: _is_heard(world, log, probes, more=more), what="events")
        errback = world.signature("limited").set(queue=world.scene.queue + more)
        failed = world.call("nap", f"hard{more}", 60, time_limit=1, link_error=errback, more=more)
        world.await_line("end", failed.id)
        # A second call of the errback would stand before this one.
        after = world.call("add", 1, 1, more=more)
        assert after.get(timeout=300) == 2
        wait_for(lambda: "task-succeeded" in log.of(after.id))
    log.close()
    assert world.scene.said("start").count(failed.id) == 1
    assert log.of(failed.id).count("task-failed") == 1


def _is_heard(world: World, log: EventLog, probes: list[str], *, more: str) -> bool:
    probe = world.call("add", 1, 1, more=more)
    probes.append(probe.id)
    assert probe.get(timeout=300) == 2
    return any("task-succeeded" in log.of(one) for one in probes)


def test_a_warm_shutdown(world: World) -> None:
    """What runs ends; what is held is another worker's at once, not when the last has ended."""
    with _worker(world, more="-warm") as leaving:
        shorts = _buffer(world, more="-warm", seconds=2.5)
        wait_for(lambda: world.count("leased", "-warm") == 6)
        world.app.control.shutdown([world.node(leaving)])
        with _joined(world, more="-warm"):
            world.await_line("end", *shorts, seconds=1.5)
            assert "long-warm" not in world.scene.said("end")
            world.await_line("end", "long-warm")
            assert leaving.wait(100) == 0
    assert [world.scene.said("start").count(name) for name in (*shorts, "long-warm")] == [1] * 6


@pytest.mark.parametrize("soft", [0, 1])
def test_a_cold_shutdown(world: World, soft: float) -> None:
    """What runs is ended, after the soft shutdown's time if there is one, and runs again elsewhere.

    At once, and not after a lease, which is 30 s here.
    """
    short, long = f"{soft}-short", f"{soft}-long"
    conf = {"worker_soft_shutdown_timeout": soft}
    with _worker(world, more="-cold", slots=2, conf=conf) as leaving:
        world.call("nap", short, 0.8, more="-cold")
        world.call("nap", long, 1.8, more="-cold")
        world.await_line("start", short, long)
        leaving.send_signal(signal.SIGQUIT)
        told_at = time.time()
        with _joined(world, more="-cold"):
            wait_for(lambda: world.scene.said("start").count(long) == 2, seconds=15)
            assert time.time() - told_at <= soft + 3
            leaving.wait(100)
    starts = world.scene.said("start")
    assert (starts.count(short), starts.count(long)) == (1 if soft else 2, 2)


def test_autoscale(world: World) -> None:
    """What is taken makes the pool grow at once, up to its most; what is idle ends again."""
    with _worker(world, "--autoscale=3,1", more="-scale") as scaled:
        for n in range(4):
            world.call("nap", f"scaled-{n}", 1, more="-scale")
        starts = world.await_line("start", "scaled-0", "scaled-1", "scaled-2")
        assert max(line.at for line in starts) - starts[0].at < 0.8
        assert (world.count("leased", "-scale"), world.count("ready", "-scale")) == (3, 1)
        wait_for(lambda: len(world.seen(scaled, "stats")["pool"]["processes"]) == 1)
        world.command(scaled, "autoscale", 2, 1)
        for n in range(4):
            world.call("nap", f"fewer-{n}", 0.5, more="-scale")
        world.await_line("start", "fewer-0", "fewer-1")
        assert (world.count("leased", "-scale"), world.count("ready", "-scale")) == (2, 2)


def test_without_prefetch(world: World) -> None:
    """With `worker_disable_prefetch` nothing is held beyond the slots, however short."""
    with _worker(world, "--disable-prefetch", more="-bare"):
        _buffer(world, more="-bare", seconds=0.5)
        world.call("run", "next-bare", 1, more="-bare", priority=0)
        more = [f"more-bare-{n}" for n in range(5)]
        for name in more:
            world.call("run", name, more="-bare")
        world.await_line("start", "next-bare")
        time.sleep(0.3)  # time enough to take more
        assert (world.count("leased", "-bare"), world.count("ready", "-bare")) == (1, 5)
        world.await_line("end", *more)


def test_threads_and_solo(tmp_path_factory: pytest.TempPathFactory) -> None:
    """A task longer than its lease starts once, on a pool without processes too.

    Also when the worker's own loop runs it, and somebody else waits for what comes back.
    """
    folder = tmp_path_factory.mktemp("pools")
    with contrast("fair", folder, settings.REDIS_URL, CONTRAST_LEASE="1") as scene:
        caller = Caller(scene, fair=[scene.queue])
        threads = scene.worker("--pool=threads", slots=2, wait=False)
        solo = scene.worker("--pool=solo", wait=False)
        for worker in (threads, solo):
            scene.await_ready(worker)
        names = [f"pool-{n}" for n in range(3)]
        for name in names:
            caller.call("nap", name, 3)
        pids = [line.pid for line in caller.await_line("end", *names)]
        assert sorted(map(pids.count, set(pids))) == [1, 2]
        assert sorted(scene.said("start")) == names
        # Then they share short ones, and each ends when it is told to.
        more = [f"short-{n}" for n in range(200)]
        for name in more:
            caller.call("run", name, 0.005)
        caller.await_line("start", "short-50")
        for worker in (threads, solo):
            worker.send_signal(signal.SIGTERM)
        assert [threads.wait(100), solo.wait(100)] == [0, 0]
        assert caller.count("leased") == 0
        ended = scene.said("end")
        assert len(ended) == len(set(ended)) == len(scene.said("start"))
        assert caller.count("ready") == len(names) + len(more) - len(ended)
        caller.close()
