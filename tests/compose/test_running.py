"""compose/, running: every service as its user, in its read-only root, with its own variables.

No container engine is needed: rooms (rooms.py) stand for containers, and Debian's PostgreSQL, Redis
and Prometheus for theirs.
"""

import json
import os
import re
import signal
import subprocess
import time
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


def test_the_image_has_the_project_and_no_tools(installation: Installation) -> None:
    """The code that runs is the image's, compiled before; there is no pip and no test in it."""
    room = installation.rooms["worker-1"]
    asked = room.run("python", "-c", "import jobs, sys; print(jobs.__file__, sys.prefix)")
    assert asked.stdout.split() == ["/srv/fairshift/jobs/__init__.py", "/opt/fairshift"]
    listed = room.run("ls", "/srv/fairshift").stdout.split()
    assert set(listed) - {"__pycache__"} == {"config", "fleet", "jobs", "manage.py", "templates"}
    assert room.run("ls", "/srv/fairshift/jobs/__pycache__").returncode == 0
    assert room.run("ls", "/opt/fairshift/bin/pip").returncode != 0


@pytest.mark.parametrize("name", ["worker-1", "system-1"])
def test_the_installation_breaks_no_check(installation: Installation, name: str) -> None:
    """`check --deploy`, as the role of web and workers, and as the tables' owner."""
    done = installation.rooms[name].run("python", "manage.py", "check", "--deploy")
    assert done.returncode == 0, done.stderr
    # Debian's Redis has the fixes, in an old version. TLS is the operator's: see the page.
    found = set(re.findall(r"\((\w+\.\w+)\)", done.stderr))
    assert found <= {"fairshift.W205", "security.W004", "security.W008"}, done.stderr


def test_the_web_process_cannot_change_the_audit(installation: Installation) -> None:
    """Nor can it switch off what guards the tables: it does not own them."""
    script = """
from django.db import connection
for statement in ("DELETE FROM jobs_auditentry", "ALTER TABLE jobs_auditentry DISABLE TRIGGER ALL"):
    try:
        connection.cursor().execute(statement)
    except Exception as error:
        print(type(error.__cause__).__name__)
"""
    done = installation.rooms["web-1"].run("python", "manage.py", "shell", "--command", script)
    assert done.stdout.split()[-2:] == ["InsufficientPrivilege"] * 2, done.stderr


def test_a_submit_over_http_succeeds(caller: Caller) -> None:
    """From a caller with a token, through web, PostgreSQL, Redis and a worker, and back."""
    [*_, done] = caller.ask("submit", "own_tasks.greet", "--arg", "name=Ada", "--watch")
    assert done == {"succeeded": 1}


def test_the_site_has_its_pages_and_files(installation: Installation) -> None:
    """The templates are in the image, and so are the styles and scripts that a page names."""
    fetch = "import sys, urllib.request as u; print(u.urlopen(sys.argv[1]).read().decode())"
    web = installation.rooms["web-1"]
    page = web.run("python", "-c", fetch, "http://localhost:8000/login/").stdout
    assert 'name="password"' in page
    files = re.findall(r'(?:src|href)="(/static/[^"]+)"', page)
    assert any(name.endswith(".css") for name in files)
    for name in files:
        done = web.run("python", "-c", fetch, f"http://localhost:8000{name}")
        assert done.returncode == 0, f"{name}: {done.stderr}"
        assert web.run("ls", f"/srv/fairshift/.fairshift{name}").returncode == 0


def test_another_up_is_harmless(installation: Installation) -> None:
    """Compose runs the one-shots again at each `up`, while the others work."""
    for name in ONE_SHOT:
        again = installation.start(name, 2)
        assert again.process.wait(300) == 0, again.end()


def test_flower_asks_for_the_login(installation: Installation) -> None:
    """Without it there is neither a page nor its health."""
    ask = "import urllib.request as u, sys; u.urlopen('http://flower:5555' + sys.argv[1])"
    for path in ("/", "/healthcheck", "/metrics"):
        done = installation.rooms["web-1"].run("python", "-c", ask, path)
        assert "401" in done.stderr


def test_beats_share_the_work(installation: Installation) -> None:
    """One leads, and the other stands by; both are healthy."""
    logs = [room.log.read_text() for room in installation.of("beat")]
    roles = [re.findall(r"beat: \S+ (leads|stands by)", log) for log in logs]
    assert sorted(roles) == [["leads"], ["stands by"]]


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


def test_workers_are_scaled(installation: Installation, caller: Caller) -> None:
    """A second worker takes runs as soon as it is there."""
    second = installation.start("worker", 2)
    installation.wait_healthy(second)
    wait_for(lambda: " ready." in second.log.read_text(), seconds=30, what="the worker")
    naps = Path(installation.rooms["web-1"].log).with_name("naps.ndjson")
    naps.write_text("".join(json.dumps({"seconds": 1.5}) + "\n" for _ in range(8)))
    began_at = time.monotonic()
    caller.ask("submit", "own_tasks.nap", "--each", str(naps), "--watch")
    # Eight runs in the four slots of one worker take 3 s.
    assert time.monotonic() - began_at < 12
    assert len(_workers_of(installation, task="own_tasks.nap")) == 2


def test_a_worker_that_stops_ends_its_runs(installation: Installation, caller: Caller) -> None:
    """After SIGTERM, as `docker compose stop` sends it, a run ends within the grace."""
    other, worker = installation.rooms["worker-2"], installation.rooms["worker-1"]
    _stop(installation, other)
    submit = caller.start("submit", "own_tasks.nap", "--arg", "seconds=4", "--watch", "--json")
    wait_for(lambda: "running" in _states(installation), seconds=30, what="the run to start")
    began_at = time.monotonic()
    _stop(installation, worker)
    output, _ = submit.communicate(timeout=300)
    assert json.loads(output.splitlines()[-1]) == {"succeeded": 1}
    assert time.monotonic() - began_at < _seconds(installation, "worker")
    assert "running" not in _states(installation)


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


def _workers_of(installation: Installation, *, task: str) -> list[str]:
    query = f"SELECT DISTINCT worker_id::text FROM jobs_run WHERE task = '{task}'"
    return _sql(installation, query)


def _seconds(installation: Installation, service: str) -> float:
    return float(str(installation.services[service]["stop_grace_period"]).removesuffix("s"))


def _stop(installation: Installation, room: Room) -> None:
    """End a room as Compose does; it must not need the SIGKILL at the end of the grace."""
    room.process.send_signal(signal.SIGTERM)
    service = room.name.rpartition("-")[0]
    assert room.process.wait(_seconds(installation, service)) == 0, room.end()
