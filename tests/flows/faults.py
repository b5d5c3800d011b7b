"""An installation, its faults, each made for real and taken back, and what it says of itself."""

import json
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from secrets import token_urlsafe
from threading import Event
from typing import Any, Final

import psycopg
import urllib3
import yaml

from jobs.management.stack import programs
from jobs.management.stack.stack import free_port
from tests.docs.pages import PROJECT
from tests.flows.breaking import Break, repeated
from tests.flows.installation import Installation
from tests.flows.processes import Process
from tests.flows.test_doctor import SAFE
from tests.flows.web import Site
from tests.jobs.pages.metrics.scraping import Found, parsed
from tests.proxy import NONE, Faults, Proxy
from tests.waiting import wait_for

RULES: Final = PROJECT / "compose/prometheus/rules.yml"
SET_UP: Final = """
from jobs.owners.tokens import make_token
from jobs.system.notices.endpoints import make_endpoint
make_endpoint({"name": "ci", "url": "https://ci.example/", "events": ["job.failing"]}, owner=None)
print("token", make_token("faults", scopes=["read", "submit", "operate", "admin"]).secret)
"""
PLAIN: Final = """
from celery import current_app
current_app.send_task("shop.report", queue="reports")
"""
FIRING: Final = """
count by (alertname) (ALERTS{{alertstate="firing", alertname!~"Fairshift({})"}}) > bool 0
"""
"""An alert may fire for several queues or problems: it counts once."""
MINUTES: Final = 15
"""How long the state of a scrape lasts for the alert rules."""


@dataclass
class World:
    """The installation, and who asks it."""

    here: Installation
    proxy: Proxy
    """The worker's way to Redis."""
    folder: Path
    port: int = field(default_factory=partial(free_port, 0))
    parts: dict[str, Process] = field(default_factory=dict)
    site: Site = field(init=False)

    @property
    def environ(self) -> dict[str, str]:
        """The variables of every part, beside the addresses of the servers."""
        return {
            "DJANGO_SETTINGS_MODULE": "tests.flows.fault_settings",
            "ALLOWED_HOSTS": "127.0.0.1",
            "FAIRSHIFT_OFFERED_TASKS": "tests.*",
            "FAIRSHIFT_METRICS_ADDRESSES": "127.0.0.0/8",
        }

    def start(self, name: str) -> None:
        """Start one part."""
        here, environ = self.here, self.environ
        match name:
            case "worker":
                process = here.start_worker(name, 1, REDIS_URL=self.proxy.url, **environ)
            case "system":
                process = here.start_system(**environ)
            case "beat":
                process = here.start_beat(**environ)
            case "notices":
                process = here.start(programs.notices_worker(slots=1), **environ)
            case _:
                process = here.start(programs.web(port=self.port, processes=1), **environ)
        self.parts[name] = process

    def ask(self, path: str, body: Any = None) -> Any:
        """Send a request to the API; return the answer's body."""
        answer = self.site.send("GET" if body is None else "POST", path, body)
        assert answer.status < 300, answer.body
        return answer.body

    def submit(self, **options: Any) -> str:
        """Submit a run of acme; return its id."""
        body = {"owner": "acme", "task": "tests.add", "arguments": {"x": 1, "y": 2}, **options}
        return str(self.ask("/runs", body)["id"])

    def why(self, run: str) -> str:
        return str(self.ask(f"/runs/{run}/why")["why"])

    def state(self, run: str) -> str:
        return str(self.ask(f"/runs/{run}")["state"])

    def scrape(self) -> str:
        """Return the metrics, as Prometheus gets them."""
        answer = urllib3.request("GET", f"{self.site.url}/metrics", timeout=100, retries=False)
        assert answer.status == 200, answer.data
        return answer.data.decode()

    def command(self, name: str) -> dict[str, Any]:
        """Return the JSON of a command of manage.py, which may take its time."""
        safe = SAFE if name == "doctor" else {}
        environ = {**self.environ, **safe, "DJANGO_SETTINGS_MODULE": "tests.flows.fault_settings"}
        done = self.here.manage(name, "--json", "--timeout=60", **environ)
        assert done.stdout.startswith("{"), done.stderr
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    def findings(self) -> set[str]:
        """Return the ids that doctor finds, without the project's name."""
        return {one["id"].removeprefix("fairshift.") for one in self.command("doctor")["findings"]}

    def healed(self) -> None:
        """Wait until the verdict has no problem, by the metrics."""
        wait_for(
            lambda: "fairshift_problem{" not in self.scrape(),
            seconds=150,
            every=1,
            what="a healthy installation",
        )

    def close(self) -> None:
        self.here.stop()


def codes(found: Found) -> set[str]:
    """Return the codes of the problems that a scrape has."""
    return {dict(labels)["code"] for name, labels in found if name == "problem"}


def assert_alerts(
    text: str, expected: Collection[str], *, also: Collection[str], folder: Path
) -> None:
    """Fail unless these alerts fire, and at most `also` beside them, if a scrape's state lasts.

    The shipped rules are evaluated by promtool.
    """
    promtool = shutil.which("promtool")
    assert promtool, "install Debian's prometheus"
    asked = set(re.findall(r"\bfairshift_(\w+)", RULES.read_text()))
    series = []
    for (name, labels), value in parsed(text).items():
        if name in asked:
            given = ",".join(f"{key}={json.dumps(label)}" for key, label in sorted(labels))
            series.append(
                {"series": f"fairshift_{name}{{{given}}}", "values": f"{value:g}x{4 * MINUTES}"}
            )
    samples = [{"labels": f'{{alertname="Fairshift{name}"}}', "value": 1} for name in expected]
    case = {
        "interval": "30s",
        "input_series": series,
        "promql_expr_test": [
            {
                "eval_time": f"{MINUTES}m",
                "expr": FIRING.format("|".join(also)),
                "exp_samples": samples,
            }
        ],
    }
    path = folder / "fault_test.yml"
    path.write_text(
        yaml.safe_dump({"rule_files": [str(RULES)], "evaluation_interval": "30s", "tests": [case]})
    )
    done = subprocess.run(
        [promtool, "test", "rules", str(path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


Made = Callable[[World], AbstractContextManager[None]]


def killed(*names: str) -> Made:
    """Kill these parts."""

    @contextmanager
    def make(world: World) -> Iterator[None]:
        for name in names:
            world.parts[name].kill()
        try:
            yield
        finally:
            for name in names:
                world.start(name)
                world.parts[name].ready(seconds=60)

    return make


@contextmanager
def deaf_worker(world: World) -> Iterator[None]:
    """Redis answers the worker no more, and no connection is closed."""
    world.proxy.faults = Faults(hides_loss=True)
    try:
        yield
    finally:
        world.proxy.faults = NONE


@contextmanager
def missing_task(world: World) -> Iterator[None]:
    """A cleanup of the project deletes a PeriodicTask, again and again: beat makes it again."""
    delete = "DELETE FROM django_celery_beat_periodictask WHERE task = 'fairshift.system.rescue'"
    with repeated(lambda: world.here.statement(delete), seconds=0.2):
        yield


@contextmanager
def plain_message(world: World) -> Iterator[None]:
    """A plain call goes to a stock queue, from which no worker takes."""
    world.here.run(PLAIN, **world.environ)
    try:
        yield
    finally:
        world.here.servers.client().delete("reports")


def broken(world: World, *, how: Break) -> AbstractContextManager[dict[str, str]]:
    """A server fails."""
    return how(world.here)


@contextmanager
def changed_password(world: World) -> Iterator[None]:
    """Redis gets a password that no process has, and cuts all connections."""
    client = world.here.servers.client()
    try:
        client.execute_command("ACL", "SETUSER", "default", "resetpass", ">new")
        client.execute_command("CLIENT", "KILL", "TYPE", "normal")
        yield
    finally:
        client.execute_command("ACL", "SETUSER", "default", "nopass")
        client.close()


@contextmanager
def full_disk(world: World) -> Iterator[None]:
    """A file takes all room on PostgreSQL's disk, and submits are refused for that reason."""
    filler = world.here.servers.state_dir / "filler"
    try:
        with suppress(OSError), filler.open("wb", buffering=0) as file:
            while True:
                file.write(bytes(4096))
        text = token_urlsafe(3_000)
        body: dict[str, Any] = {"owner": "acme", "task": "tests.echo", "countdown": 9_999}
        body["arguments"] = [{"text": text}] * 100
        sent = partial(world.site.send, "POST", "/submissions", body)
        wait_for(lambda: "DiskFull" in str(sent().body), every=0.1)
        yield
    finally:
        filler.unlink()
        # A PostgreSQL that could not write its log has ended.
        world.here.servers.postgres.start()


@contextmanager
def old_transaction(world: World) -> Iterator[None]:
    """A transaction has written, and stays open."""
    with psycopg.connect(world.here.urls["DATABASE_URL"], application_name="report") as connection:
        connection.execute("SELECT pg_current_xact_id()")
        yield


@contextmanager
def paused_owner(world: World) -> Iterator[None]:
    """An operator pauses the owner."""
    world.ask("/owners/acme/pause", {"reason": "stocktaking"})
    try:
        yield
    finally:
        world.ask("/owners/acme/resume", {"reason": "done"})


@contextmanager
def slow_machine(world: World) -> Iterator[None]:
    """Each process gets a quarter of the time."""
    pids = [world.parts[name].pid for name in ("worker", "system", "beat", "notices")]

    def stop() -> None:
        for number in (signal.SIGSTOP, signal.SIGCONT):
            for pid in pids:
                os.killpg(pid, number)
            Event().wait(0.3 if number == signal.SIGSTOP else 0.0)

    with repeated(stop, seconds=0.1):
        yield


def begun(world: World) -> World:
    """Start all parts, and make what the faults need."""
    token = world.here.run(SET_UP, **world.environ).split()[-1]
    world.site = Site(f"http://127.0.0.1:{world.port}", token)
    for name in ("web", "worker", "system", "beat", "notices"):
        world.start(name)
    for process in world.parts.values():
        process.ready(seconds=100)
    return world
