"""compose/, running: every service as its user, in its read-only root, with its own variables.

No container engine is needed: rooms (rooms.py) stand for containers, and Debian's PostgreSQL, Redis
and Prometheus for theirs.
"""

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any, Final

import pytest

from tests.compose.conftest import Caller
from tests.compose.image import Image
from tests.compose.installation import ONE_SHOT, POSTGRES, Installation, installed
from tests.compose.rooms import Room, may_make_rooms
from tests.processes import children
from tests.waiting import wait_for

pytestmark = [
    pytest.mark.proof,
    pytest.mark.skipif(not may_make_rooms(), reason="rooms need root, and the kernel's namespaces"),
    pytest.mark.skipif(not POSTGRES, reason="needs Debian's PostgreSQL, Redis and Prometheus"),
]

OURS: Final = ("web-1", "worker-1", "system-1", "beat-1", "beat-2", "flower-1")


@pytest.mark.smoke
def test_every_service_becomes_healthy(installation: Installation) -> None:
    """One-shots end well, and each other service passes its own health check."""
    for room in installation.rooms.values():
        if room.name.rpartition("-")[0] in ONE_SHOT:
            assert room.process.poll() == 0, room.end()
        else:
            done = installation.health(room)
            assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", OURS)
def test_a_process_may_write_nothing_but_its_temporary_files(
    installation: Installation, name: str
) -> None:
    """It is nobody's superuser, has no capability, and its root is read-only."""
    room = installation.rooms[name]
    assert room.run("id", "--user").stdout == "10001\n"
    status = room.run("grep", "-E", "^(CapEff|CapBnd|NoNewPrivs)", "/proc/self/status").stdout
    assert set(status.split()[1::2]) == {"0" * 16, "1"}
    for path in ("/srv/fairshift/x", "/opt/x", "/etc/x", "/srv/tasks/x", "/x"):
        refused = room.run("touch", path)
        assert "Read-only file system" in refused.stderr, path
    assert room.run("touch", "/tmp/x").returncode == 0
    found = room.run("find", "/srv", "/opt", "/etc", "/run", "/var", "-writable", "!", "-type", "l")
    assert found.stdout == ""


def test_a_submit_over_http_succeeds(caller: Caller) -> None:
    """From a caller with a token, through web, PostgreSQL, Redis and a worker, and back."""
    [*_, done] = caller.ask("submit", "own_tasks.greet", "--arg", "name=Ada", "--watch")
    assert done == {"succeeded": 1}


@pytest.mark.parametrize("name", ["worker-1", "system-1", "beat-1", "beat-2"])
def test_a_process_that_hangs_is_unhealthy(installation: Installation, name: str) -> None:
    """A frozen process stops touching its file, and one that goes on touches it again."""
    room = installation.rooms[name]
    os.kill(room.process.pid, signal.SIGSTOP)
    try:
        assert room.run("touch", "--date=2 minutes ago", "/tmp/alive").returncode == 0
        assert installation.health(room).returncode != 0
    finally:
        os.kill(room.process.pid, signal.SIGCONT)
    installation.wait_healthy(room)


def test_prometheus_reads_the_metrics(installation: Installation, operated: Path) -> None:
    """With a token that is made as docs/operate/compose.md says."""
    words = ["prometheus", "--all-owners", "--scopes", "read"]
    made = installation.rooms["web-1"].run(
        "python", "manage.py", "fleet", "token", "create", *words
    )
    assert made.returncode == 0, made.stderr
    (operated / "prometheus/token").write_text(made.stdout)
    room = installation.rooms["prometheus-1"]
    # The site for Prometheus; PostgreSQL and Redis for the site.
    query = 'http://localhost:9090/api/v1/query?query={__name__=~"up|fairshift_up"}'

    def is_up() -> bool:
        answer = json.loads(room.run("wget", "--quiet", "--output-document=-", query).stdout)
        return [row["value"][1] for row in answer["data"]["result"]] == ["1", "1", "1"]

    wait_for(is_up, seconds=45, what="a scrape of the site")


def test_redis_refused_no_command(installation: Installation) -> None:
    """The users of Redis have the rights that all of this needed."""
    assert "NOPERM" not in installation.logs()


def test_redis_over_tls(
    image: Image, operated: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """With compose.tls.yaml, processes reach Redis by TLS alone, and check its certificate."""
    made = subprocess.run(
        ["sh", str(operated / "certificates/make.sh")], capture_output=True, check=False
    )
    assert made.returncode == 0, made.stderr
    files = ("compose.yaml", "compose.tls.yaml")
    folder = tmp_path_factory.mktemp("rooms") / "tls"
    connect = (
        "import os; from config.celery import app; "
        "url = os.environ['REDIS_URL'].replace(*os.environ['CHANGE'].split()); "
        "app.connection_for_write(url).default_channel.client.ping()"
    )
    with installed(operated, *files, profile="*", image=image, folder=folder) as running:
        running.up("redis")
        [redis] = running.of("redis")
        running.wait_healthy(redis)
        for name, service in running.services.items():
            if not service["image"].startswith("fairshift"):
                continue
            assert service["environment"]["REDIS_URL"].startswith("rediss://")
            service["command"] = ["sleep", "infinity"]
            room = running.start(name)
            same = _connected(room, connect, change="x x")
            assert same.returncode == 0, same.stderr
            # Without TLS.
            plain = _connected(room, "import redis; redis.Redis('redis').ping()", change="")
            assert "ConnectionError" in plain.stderr
            # Another authority has not signed its certificate.
            other = "/certificates/ca.crt /etc/ssl/certs/ca-certificates.crt"
            assert "CERTIFICATE_VERIFY_FAILED" in _connected(room, connect, change=other).stderr


def test_a_small_installation_runs_all_in_one_service(
    image: Image, operated: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """It runs what is submitted, also when one of its programs is killed; SIGTERM lets runs end."""
    folder = tmp_path_factory.mktemp("rooms") / "small"
    with installed(operated, profile="small", image=image, folder=folder) as running:
        running.up()
        [room] = running.of("fairshift")
        running.wait_healthy(room)
        caller = Caller(running)
        submit = ("submit", "own_tasks.greet", "--arg", "name=Ada", "--watch")
        assert caller.ask(*submit)[-1] == {"succeeded": 1}
        for pid in children(room.process.pid):
            os.kill(pid, signal.SIGKILL)
        assert caller.ask(*submit)[-1] == {"succeeded": 1}
        assert room.run("python", "manage.py", "check", "--deploy").returncode == 0
        nap = caller.start("submit", "own_tasks.nap", "--arg", "seconds=4", "--watch", "--json")
        wait_for(lambda: "running" in _states(running), seconds=60, what="the run to start")
        _stop(running, room)
        output, _ = nap.communicate(timeout=300)
        assert json.loads(output.splitlines()[-1]) == {"succeeded": 1}
        assert "NOPERM" not in running.logs()


def _connected(room: Room, code: str, *, change: str) -> Any:
    python = "/opt/fairshift/bin/python"
    wait_for(lambda: room.run("ls", python).returncode == 0, what="the room")
    return room.run("env", f"CHANGE={change}", "python", "-c", code)


def _sql(installation: Installation, query: str) -> list[str]:
    [web] = installation.of("web")
    connect = "psycopg.connect(os.environ['DATABASE_URL'])"
    code = f"import os, psycopg; print(*(row[0] for row in {connect}.execute({query!r})))"
    done = web.run("python", "-c", code)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def _states(installation: Installation) -> set[str]:
    found = _sql(installation, "SELECT DISTINCT state FROM jobs_run")
    return set(found)


def _seconds(installation: Installation, service: str) -> float:
    return float(str(installation.services[service]["stop_grace_period"]).removesuffix("s"))


def _stop(installation: Installation, room: Room) -> None:
    """End a room as Compose does; it must not need the SIGKILL at the end of the grace."""
    room.process.send_signal(signal.SIGTERM)
    service = room.name.rpartition("-")[0]
    assert room.process.wait(_seconds(installation, service)) == 0, room.end()
