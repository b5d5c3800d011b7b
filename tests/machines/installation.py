"""An installation on thirteen machines, with the shipped settings."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

from config.embedded.accounts import server_account
from jobs.management.stack import programs
from jobs.management.stack.stack import Program, Stack
from tests.contrast.installation import FAKING
from tests.judge import TaskLog
from tests.machines.caller import OWNERS
from tests.machines.network import Switch, switch
from tests.machines.remains import remains, show_threads
from tests.machines.servers import Cache, Database, start_sentinel
from tests.proxy import Proxy
from tests.state_dirs import new_state_dir, remove_state_dir
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
PROGRAMS: Final = ("web", "system", *BEATS, *WORKERS)
"""Machines with a program of ours."""
SLOTS: Final = 4
MARK: Final = 77
SERVERS: Final = ("db1", "db2", "cache1", "cache2")
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
# `state` is indexed: while a backlog ends, the supervisors ask this three times a second.
OPEN: Final = "SELECT count(*) FROM jobs_run WHERE state <> 'succeeded' AND ended_at IS NULL"
LOOKS_EACH_SECONDS: Final = 0.3


class Installation:
    """The machines by name, and what runs on them."""

    def __init__(
        self,
        network: Switch,
        folder: Path,
        home: Path,
        ending: ExitStack,
    ) -> None:
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
        for name in PROGRAMS:
            self.boot(name)
        for name in PROGRAMS:
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
            environ |= {**FAKING, "FAKETIME": CLOCKS[name]}
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
            what = "every run to end"
            wait_for(self.is_at_rest, seconds=seconds, what=what, every=LOOKS_EACH_SECONDS)
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
