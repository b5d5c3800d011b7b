"""The same journey on every kind of Redis that a URL can name, and through a fail-over."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

import pytest
from django.conf import settings
from kombu import Connection

from config.state import PROJECT
from tests.contrast.scenery import Scenery, scenery
from tests.contrast.servers import (
    Authority,
    Server,
    Watched,
    behind_sentinel,
    folder,
    over_tcp,
    over_tls,
    over_unix_socket,
)
from tests.fleet.fair_worlds import connected
from tests.flows.processes import environment
from tests.waiting import wait_for

pytestmark = pytest.mark.proof

OWNERS = ("acme", "globex", "stranger")
Given = tuple[str, object]


@contextmanager
def _with_authority() -> Iterator[Server]:
    with folder() as home, over_tls(Authority(home)) as server:
        yield server


SERVERS: dict[str, Callable[[], AbstractContextManager[Server]]] = {
    "tcp": over_tcp,
    "tls": _with_authority,
    "unix socket": over_unix_socket,
}


@pytest.fixture(params=[*SERVERS, "bundled"])
def scene(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Scenery]:
    """A queue on one kind of server, without a worker."""
    with ExitStack() as stack:
        if request.param == "bundled":
            url, client = settings.REDIS_URL, connected()
        else:
            server = stack.enter_context(SERVERS[request.param]())
            url, client = server.url, server.client
            assert client.info("server")["redis_version"].startswith("7.")
        yield stack.enter_context(scenery("fair", tmp_path, url, client))


def test_the_journey(scene: Scenery) -> None:
    """Backlog, work, retry, wake-up and stop are the same over TCP, TLS, a socket, and in 6.2."""
    journey(scene)


def journey(scene: Scenery) -> None:
    """Walk through all that a worker does."""
    owners = ", ".join(map(repr, OWNERS))
    scene.call(f"publish(200, {owners})")
    assert scene.client.llen(scene.queue) == 200
    owners_key = f"fairshift:{{{scene.queue}}}:owners"
    assert scene.client.zrange(owners_key, 0, -1) == [name.encode() for name in OWNERS]
    worker = scene.worker(slots=2)
    wait_for(lambda: len(scene.said("end")) >= 200, seconds=30, what="200 runs")
    assert sorted(scene.said("start"), key=int) == [str(number) for number in range(200)]
    assert scene.client.llen(scene.queue) == 0

    scene.call("once_more.delay('again', 1)")
    wait_for(lambda: "again" in scene.said("end"), what="the retry")
    first, second = scene.times("start", "again")
    assert 0.9 <= second - first <= 30

    woken_after = []
    for number in range(3):
        name = f"idle-{number}"
        wait_for(lambda: _sleepers(scene), what="the worker to sleep")
        scene.call(f"say_and_send({name!r})")
        [started] = wait_for(lambda at=name: scene.times("start", at), what="a wake-up")  # type: ignore[misc]
        [sent] = scene.times("sent", name)
        woken_after.append(started - sent)
        print(f"woken after {(started - sent) * 1000:.0f} ms")
    assert max(woken_after) <= 10

    before = len(scene.said("end"))
    scene.call(f"publish(400, {owners}, seconds=0.2)")
    wait_for(lambda: len(scene.said("end")) > before + 20, what="work in progress")
    assert sum(scene.held().values()) > 0
    worker.send_signal(signal.SIGTERM)
    # Celery's own consumer forgets what a child was sent: that child may wait 30 s for a word.
    worker.wait(300)
    ended = len(scene.said("end")) - before
    left = scene.client.llen(scene.queue)
    assert 20 < ended < 400
    assert (ended + left, scene.held()) == (400, {})
    assert len(scene.said("start")) == before + ended + 1  # the retry began twice


def _sleepers(scene: Scenery) -> int:
    return int(scene.client.zcard(f"fairshift:{{{scene.queue}}}:sleepers"))


def test_a_server_with_a_strange_certificate_is_refused(tmp_path: Path) -> None:
    """With `ssl_cert_reqs=required` nothing is published to a server that another one signed."""
    ours, strangers = tmp_path / "ours", tmp_path / "strangers"
    ours.mkdir()
    strangers.mkdir()
    believed = Authority(ours).certificate
    other = Authority(strangers)
    with over_tls(other) as server:
        url = server.url.replace(str(other.certificate), str(believed))
        with scenery("fair", tmp_path, url, server.client) as scene:
            with pytest.raises(subprocess.CalledProcessError):
                scene.call("app.conf.task_publish_retry = False\nrun.delay(1)")
            assert server.client.dbsize() == 0


def test_the_contract_on_redis_7(tmp_path: Path) -> None:
    """The suite that holds the reference and the scripts together passes on Debian's Redis."""
    with over_tcp() as server:
        told = subprocess.run(
            [
                *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"),
                *("tests/fleet/fairness/test_queue.py", "tests/fleet/fairness/test_sequences.py"),
            ],
            cwd=PROJECT,
            env={**os.environ, **environment(tmp_path / "tasks.log"), "REDIS_URL": server.url},
            capture_output=True,
            text=True,
            check=False,
        )
        print(told.stdout[-300:])
        assert told.returncode == 0, told.stdout[-3_000:] + told.stderr
        assert server.client.info("stats")["total_commands_processed"] > 1_000


CONSUMERS = ("celery.worker.consumer:Consumer", "fleet.worker.consumer:Consumer")


@pytest.fixture
def watched() -> Iterator[Watched]:
    with behind_sentinel() as servers:
        yield servers


@pytest.fixture
def sentinel_scene(watched: Watched, tmp_path: Path) -> Iterator[Scenery]:
    """A queue behind a Sentinel; a lease is longer than a fail-over."""
    environ = {
        "CONTRAST_OPTIONS": json.dumps({"master_name": watched.name}),
        "CONTRAST_LEASE": "20",
    }
    with scenery("fair", tmp_path, watched.url, watched.master.client, **environ) as scene:
        yield scene


def test_the_journey_behind_a_sentinel(sentinel_scene: Scenery) -> None:
    """It is the same there, though the first Sentinel of the URL is down."""
    journey(sentinel_scene)


def test_whichever_sentinel_is_asked_the_leases_are_the_same(watched: Watched) -> None:
    """A lost connection goes on to the next of the URL; what it held is still this process's."""
    options = {"master_name": watched.name, "fair_queues": ["jobs"]}
    with (
        Connection(watched.url, transport_options=options) as one,
        Connection(watched.url, transport_options=options) as other,
    ):
        other.maybe_switch_next()
        assert one.port != other.port
        assert one.default_channel.leases is other.default_channel.leases


@pytest.mark.parametrize("consumer", CONSUMERS)
@pytest.mark.parametrize("how", ["killed", "handed over"])
def test_a_fail_over(
    sentinel_scene: Scenery, watched: Watched, tmp_path: Path, how: str, consumer: str
) -> None:
    """The workers live on: what runs goes on and ends once, what is published later runs.

    Replication is asynchronous. What was published or acknowledged in the last moments of the old
    master is lost or runs again, when it is a plain task; and a master that hands over by command
    serves on for up to 10 s. Here the replica has heard of all before.
    """
    scene, done = sentinel_scene, tmp_path / "done"
    workers = [scene.worker(conf={"worker_consumer": consumer}) for _ in range(2)]
    scene.call(f"until.delay('long', {str(done)!r})")
    wait_for(lambda: "long" in scene.said("start"), what="the long task")
    # A stranger's work waits behind it, and some is under way or held beyond the slot.
    scene.call("publish(500, 'acme', 'stranger', seconds=0.2)")
    wait_for(lambda: len(scene.said("end")) > 20, what="work in progress")
    assert watched.master.client.wait(1, 5_000) == 1
    if how == "killed":
        watched.master.kill()
    else:
        watched.sentinel.client.sentinel_failover(watched.name)
    wait_for(watched.has_failed_over, seconds=30, what="the fail-over")
    scene.client = watched.replica.client
    began = time.monotonic()
    scene.call("say_and_send('after')")
    wait_for(lambda: "after" in scene.said("end"), seconds=60, what="work to resume")
    print(f"{how}: work resumed after {time.monotonic() - began:.1f} s")
    wait_for(lambda: len(set(scene.said("end"))) == 501, seconds=30, what="the backlog to run")
    # Its worker is busy, and speaks only through its renewals, to the new master.
    recovered = _now(scene)
    wait_for(lambda: _heard(scene) > recovered, seconds=30, what="leases to be renewed")
    done.touch()
    wait_for(lambda: "long" in scene.said("end"), what="the long task to end")
    wait_for(lambda: not scene.held(), what="its acknowledgement")
    assert scene.said("start").count("long") == 1
    assert [worker.poll() for worker in workers] == [None, None]


def _heard(scene: Scenery) -> float:
    """Return when the worker of longest silence was heard of, in seconds."""
    [(_, least)] = scene.client.zrange(
        f"fairshift:{{{scene.queue}}}:workers", 0, 0, withscores=True
    )
    return float(least) / 1_000_000


def _now(scene: Scenery) -> float:
    seconds, microseconds = scene.client.time()
    return float(seconds + microseconds / 1_000_000)
