"""An installation on thirteen machines, with the shipped settings."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from config.embedded.accounts import server_account
from fleet.stack import programs
from fleet.stack.stack import Program, Stack
from tests.contrast.scenery import FAKETIME
from tests.flows.recurring import Recurring, job_of
from tests.flows.windowed import Windowed
from tests.judge import TaskLog, Verdict, read_submit_events, read_task_events
from tests.machines.caller import OWNERS
from tests.machines.network import Switch, switch
from tests.machines.remains import remains, show_threads
from tests.machines.servers import Cache, Database, start_sentinel
from tests.own_servers import new_state_dir, remove_state_dir
from tests.proxy import Proxy
from tests.waiting import wait_for

ROOT: Final = Path(__file__).resolve().parents[2]
ADDRESSES: Final = {
    "db1": 11,
    "db2": 12,
    "cache1": 21,
    "cache2": 22,
    "web": 31,
    "caller": 32,
    "system": 41,
    "beat1": 51,
    "beat2": 52,
    "worker1": 61,
    "worker2": 62,
    "worker3": 63,
}
WORKERS: Final = ("worker1", "worker2", "worker3")
BEATS: Final = ("beat1", "beat2")
FAR: Final = "worker2"
"""Its connections to PostgreSQL and Redis lead through proxies, which may delay replies."""
CLOCKS: Final = {"worker1": "+120s", "worker3": "-120s", "beat2": "+300s"}
"""Machines whose clock is wrong."""
SLOTS: Final = 4
MARK: Final = 77
SERVERS: Final = ("db1", "db2", "cache1", "cache2")
WINDOWED: Final = 6
"""Owners whose runs start in windows alone."""
SET_UP: Final = """
import django
django.setup()
from django.core.management import call_command
from jobs.models import Owner
from jobs.owners.tokens import make_token

call_command("migrate", interactive=False, verbosity=0)
for slug in ("acme", *(f"owner-{number}" for number in range(%d))):
    Owner.objects.create(slug=slug)
print("token", make_token("scene", scopes=["read", "submit", "operate"]).secret)
"""
OPEN: Final = "SELECT count(*) FROM jobs_run WHERE ended_at IS NULL"


class Installation:
    """The machines by name, and what runs on them."""

    def __init__(self, network: Switch, folder: Path, home: Path, ending: ExitStack) -> None:
        self.folder, self._home, self._ending = folder, home, ending
        self.machines = {name: network.machine(name, end) for name, end in ADDRESSES.items()}
        self.tasks = TaskLog(folder / "tasks.log")
        for log in ("tasks.log", "submits.log"):
            (folder / log).touch()
        account = server_account()
        self.databases = [
            Database(self.machines[name], home, account=account) for name in ("db1", "db2")
        ]
        self.caches = [
            Cache(self.machines[name], home, account=account) for name in ("cache1", "cache2")
        ]
        self.primary = self.databases[0]
        self.proxies: list[Proxy] = []

    # --- setting up --------------------------------------------------------------------

    def start(self) -> None:
        """Return when everything works."""
        first, second = self.databases
        first.make()
        first.start()
        self.caches[0].start()
        self.caches[1].start(replica_of=self.caches[0])
        for name in ("cache1", "cache2", "web"):
            self.start_sentinel(name)
        wait_for(lambda: self.caches[0].client.info("replication")["connected_slaves"] == 1)
        done = self.run("web", "-c", SET_UP % OWNERS)
        [self.token] = [line.split()[1] for line in done.splitlines() if line.startswith("token ")]
        second.copy(first)
        self._detour()
        for name in ("web", "system", *BEATS, *WORKERS):
            self.boot(name)
        for name in ("web", "system", *BEATS, *WORKERS):
            self.stack(name).wait_ready(seconds=180)
        answered = "import urllib3; urllib3.request('GET', 'http://127.0.0.1:8000/health/ready')"
        wait_for(
            lambda: (
                subprocess.run(
                    self.machines["web"].enter(sys.executable, "-c", answered),
                    capture_output=True,
                    check=False,
                ).returncode
                == 0
            ),
            seconds=60,
            what="the site",
        )

    def start_sentinel(self, name: str) -> None:
        account = server_account()
        start_sentinel(self.machines[name], self._home, master=self.caches[0], account=account)

    def _detour(self) -> None:
        """Lead what the far worker asks of the four servers through a proxy each."""
        far = self.machines[FAR]
        for name in SERVERS:
            server, port = self.machines[name], 5432 if name.startswith("db") else 6379
            proxy = Proxy(
                f"tcp://{server.address}:{port}",
                host=far.address,
                namespace=far.namespace,
                mark=MARK,
            )
            self._ending.callback(proxy.close)
            self.proxies.append(proxy)
            far.detour(port, to=server, at=proxy.port, mark=MARK)

    @property
    def environment(self) -> dict[str, str]:
        """The variables of every program: all settings but these are the shipped ones."""
        sentinels = [self.machines[name].address for name in ("cache1", "cache2", "web")]
        hosts = ",".join(f"{one.machine.address}:5432" for one in self.databases)
        options = "target_session_attrs=read-write&connect_timeout=2"
        return {
            "DATABASE_URL": f"postgresql://app@{hosts}/postgres?{options}",
            "REDIS_URL": ";".join(f"sentinel://{address}:26379/0" for address in sentinels),
            "REDIS_MASTER_NAME": "main",
            "SECRET_KEY": "only for tests",
            "ALLOWED_HOSTS": "*",
            "DEBUG": "0",
            "LOG_FORMAT": "console",
            "DJANGO_SETTINGS_MODULE": "config.settings",
            "FAIRSHIFT_STATE_DIR": str(self._home),
            "FAIRSHIFT_TASKS": "tests.tasks,tests.machines.tasks",
            "FAIRSHIFT_OFFERED_TASKS": "machines.*",
            "PYTHONPATH": str(ROOT),
            "JUDGE_LOG": str(self.tasks.path),
        }

    def boot(self, name: str) -> None:
        """Start the program of a machine."""
        program = _program(name)
        environ = {**self.environment, **program.environment}
        if name in CLOCKS:
            environ |= {"LD_PRELOAD": FAKETIME, "FAKETIME": CLOCKS[name]}
            environ |= {"FAKETIME_DONT_FAKE_MONOTONIC": "1"}
            environ["PYTHONPATH"] = f"{ROOT / 'tests/machines/clock'}:{ROOT}"
        placed = Program(name, program.command, environ, ready_text=program.ready_text)
        logs = self.folder / "logs" / f"{name}-{time.monotonic_ns()}"
        self.machines[name].start(placed, logs=logs)

    def run(self, name: str, *words: str, seconds: float = 180) -> str:
        """Run Python on a machine; return what it printed."""
        done = subprocess.run(
            self.machines[name].enter(sys.executable, *words),
            env={**os.environ, **self.environment},
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-3000:]
        return done.stdout

    # --- looking -----------------------------------------------------------------------

    def stack(self, name: str) -> Stack:
        return self.machines[name].stacks[name]

    def pid(self, name: str) -> int | None:
        """Return the process id of a machine's program; None while it is down."""
        machine = self.machines[name]
        return machine.stacks[name].pid(name) if name in machine.stacks else None

    def watch(self) -> None:
        """Have each supervisor look; what has ended by itself starts again."""
        for machine in self.machines.values():
            machine.watch()

    def ask(self, query: str, *values: object) -> Any:
        """Return the one value that a query of the primary answers."""
        return self.primary.ask(query, *values)

    def is_at_rest(self) -> bool:
        self.watch()
        return bool(self.ask(OPEN) == 0)

    def drain(self, *, seconds: float) -> None:
        """Wait until every run has ended."""
        try:
            wait_for(self.is_at_rest, seconds=seconds, what="every run to end")
        except AssertionError as error:
            left = f"{self.ask(OPEN)} runs are open\n{self.remains()}"
            (self.folder / "remains.log").write_text(left)
            raise AssertionError(f"{error}: {left}") from None

    def remains(self) -> str:
        """Return what is known of open runs; the workers write their stacks to their logs."""
        show_threads(self.pid(name) for name in ("system", *WORKERS))
        master = next((cache for cache in self.caches if cache.is_master()), self.caches[0])
        return remains(self.primary, master.client)

    def log_ends(self) -> str:
        """Return the ends of the programs' logs."""
        ends = []
        for path in sorted((self.folder / "logs").glob("*/*.log")):
            ends += [
                f"--- {path.parent.name}",
                *path.read_text(errors="replace").splitlines()[-15:],
            ]
        return "\n".join(ends)


class Work:
    """What an installation is given to do, and the judge of it."""

    def __init__(self, installation: Installation, *, seconds: float) -> None:
        self.installation = installation
        here = installation.machines["caller"]
        self._asked = subprocess.Popen(
            here.enter(sys.executable, "-m", "tests.chaos.asked", os.devnull),
            env={**os.environ, **installation.environment},
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._caller: subprocess.Popen[str] | None = None
        url = installation.primary.url
        self.windowed = Windowed(lambda act, facts: self._ask("calendar", act=act, facts=facts))
        self.recurring = Recurring(url, installation.folder, installation.tasks.path)
        self._agree(seconds)
        self._make_jobs(seconds)
        self._asked.kill()
        self._asked.wait()

    def _ask(self, do: str, **facts: Any) -> dict[str, Any]:
        assert self._asked.stdin is not None and self._asked.stdout is not None
        print(json.dumps({"do": do, **facts}), file=self._asked.stdin, flush=True)
        return dict(json.loads(self._asked.stdout.readline()))

    def _agree(self, seconds: float) -> None:
        for number in range(WINDOWED):
            first = datetime.now(UTC) + timedelta(seconds=2 + 5 * number)
            count = int(seconds / 30) + 30
            self.windowed.agree(
                f"owner-{number}", first=first, count=count, seconds=20, shut_seconds=10
            )

    def _make_jobs(self, seconds: float) -> None:
        """Have recurring jobs, each of whose due times is to run."""
        before = self.recurring.moment()
        self.ends_at = before + timedelta(seconds=seconds)
        policy = {"misfire": "all", "misfire_cap": 1000, "end_at": self.ends_at.isoformat()}
        policy |= {"task": "machines.work", "arguments": {"seconds": 0.05}}
        jobs = [job_of(f"every-{n}", interval_minutes=n % 2 + 1, **policy) for n in range(10)]
        jobs += [job_of(f"cron-{n}", cron="* * * * *", **policy) for n in range(10)]
        self._ask("upsert", jobs=jobs)
        self.recurring.made(jobs, before=before, ends_at=self.ends_at)

    def begin(self, runs: int, *, seconds: float, chance: random.Random) -> None:
        """Have the caller submit these runs, spread over so many seconds."""
        at = self.installation
        log, url = str(at.folder / "submits.log"), f"http://{at.machines['web'].address}:8000"
        given = [log, url, at.token, str(runs), str(runs / seconds), str(chance.randrange(10**6))]
        self._errors = at.folder / "caller.log"
        self._caller = subprocess.Popen(
            at.machines["caller"].enter(sys.executable, "-m", "tests.machines.caller", *given),
            env={**os.environ, **at.environment},
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=self._errors.open("wb"),
            text=True,
        )

    def submitted(self, *, seconds: float) -> dict[str, int]:
        """Wait until the caller has an answer for each run; return its figures."""
        assert self._caller is not None
        caller = self._caller

        def has_ended() -> bool:
            self.installation.watch()
            return caller.poll() is not None

        wait_for(has_ended, seconds=seconds, what="the caller")
        assert caller.stdout is not None
        assert caller.returncode == 0, self._errors.read_text()[-3000:]
        return dict(json.loads(caller.stdout.read()))

    def verdicts(self) -> Sequence[Verdict]:
        """Have the judges look at logs and rows; a bad verdict fails."""
        at = self.installation
        events = read_submit_events(at.folder / "submits.log")
        for event in events:
            owner = f"owner-{int(event.key.rpartition('-')[2]) % OWNERS}"
            if event.event == "ok" and owner in self.windowed.hours:
                self.windowed.submitted(owner, event.ids)
        outside = self.windowed.verdict(at.primary.url, at.tasks.path)
        self.recurring.url = at.primary.url
        return [outside, self.recurring.verdict()]

    def starts(self) -> list[Any]:
        """Return the starts of bodies by the tasks' own log."""
        return [
            one for one in read_task_events(self.installation.tasks.path) if one.event == "start"
        ]

    def close(self) -> None:
        for process in (self._asked, self._caller):
            if process is not None:
                with suppress(ProcessLookupError):
                    process.kill()
                process.wait()


def _program(name: str) -> Program:
    """Return the program of a machine; its name there is the machine's."""
    if name == "web":
        options = ["--bind=0.0.0.0:8000", "--worker-class=gthread", "--workers=2", "--threads=4"]
        words = [sys.executable, "-m", "gunicorn", "config.wsgi", *options]
        return Program(name, [*words, "--no-control-socket"], ready_text="Listening at")
    if name.startswith("beat"):
        return programs.beat(name)
    if name == "system":
        return programs.system_worker(name)
    return programs.job_worker(name, slots=SLOTS)


@contextmanager
def installed(folder: Path) -> Iterator[Installation]:
    """Such an installation at work; afterwards nothing of it is left."""
    home = new_state_dir()
    with ExitStack() as ending:
        ending.callback(remove_state_dir, home)
        network = ending.enter_context(switch())
        installation = Installation(network, folder, home, ending)
        installation.start()
        yield installation
