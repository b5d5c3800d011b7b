"""Workers and beat as processes of a scene, on the tests' own servers and with short times."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import BinaryIO
from urllib.parse import urlencode

from django.conf import settings
from django.db import connection

from jobs.management.stack import programs
from jobs.management.stack.stack import Program, Running, Stack, start
from tests.commands import Done, python
from tests.judge import TaskLog, Verdict, judge, read_submit_events, read_task_events
from tests.judge.log import SubmitEvent
from tests.judge.sqlreader import read_rows
from tests.preloaded import PROJECT, SITE, Preloaded
from tests.processes import children

ROOT = Path(__file__).resolve().parents[2]

# Seconds, but for the last. Long enough for two busy cores, short enough to wait for.
QUICK = {
    "HEARTBEAT_SECONDS": 0.5,
    "LEASE_SECONDS": 2.0,
    "SWEEP_SECONDS": 1.0,
    "CANCEL_GRACE_SECONDS": 1.0,
    "BACKOFF_SECONDS": 0.1,
    "BACKOFF_CAP_SECONDS": 0.4,
    "PARTITION_DAYS_AHEAD": 2,
}

# By module, what its processes have imported before they are forked.
IMPORTS = {"celery": PROJECT, "gunicorn": SITE}

# Scenes do not need these, which cost a second a boot.
ALONE = ("--without-gossip", "--without-mingle", "--without-heartbeat")


def database_url() -> str:
    """Return the URL of the test database, as another process can use it."""
    given = connection.settings_dict
    parts = {key: given[key.upper()] for key in ("user", "password", "host", "port")}
    query = urlencode({key: value for key, value in parts.items() if value})
    return f"postgresql:///{given['NAME']}?{query}"


def environment(log: Path) -> dict[str, str]:
    """Return the environment of every process of a scene."""
    return {
        "DATABASE_URL": database_url(),
        "REDIS_URL": settings.REDIS_URL,
        "SECRET_KEY": "only for tests",
        "DEBUG": "0",
        "LOG_FORMAT": "console",
        "PYTHONPATH": str(ROOT),
        # A process that may keep what it has compiled spares the next one a sixth of its start.
        "PYTHONDONTWRITEBYTECODE": "",
        "FAIRSHIFT_TASKS": "tests.tasks,tests.flows.tasks,tests.flows.plain",
        "JUDGE_LOG": str(log),
        **{f"FAIRSHIFT_{name}": str(value) for name, value in QUICK.items()},
    }


@dataclass(frozen=True)
class Process:
    """One process of a scene, with its children, and its log."""

    name: str
    stack: Stack
    log: Path
    tasks: TaskLog

    @property
    def pid(self) -> int:
        """Its process id; fails when it is down."""
        pid = self.stack.pid(self.name)
        assert pid is not None, f"{self.name} is down:\n{self.log_end()}"
        return pid

    @property
    def is_alive(self) -> bool:
        return self.stack.pid(self.name) is not None

    def ready(self, *, seconds: float = 30) -> None:
        """Return when it works; fails when it ends before."""
        self.stack.wait_ready(seconds=seconds)

    def kill(self) -> None:
        """SIGKILL it with all its children; the log notes it before."""
        self.tasks.disturb(self.pid, how="killed")
        self.stack.kill_group(self.name)

    def signal(self, number: int) -> None:
        """Send a signal to the main process alone."""
        os.kill(self.pid, number)

    def stop(self, *, grace_seconds: float = 10) -> None:
        """End it by SIGTERM, and by SIGKILL after the grace."""
        self.stack.stop(grace_seconds=grace_seconds)

    def children(self) -> set[int]:
        """Return the process ids of its direct children."""
        return children(self.pid)

    def log_end(self, *, lines: int = 40) -> str:
        text = self.log.read_text(errors="replace") if self.log.exists() else ""
        return "\n".join([f"--- {self.name}", *text.splitlines()[-lines:]])


@dataclass(frozen=True)
class Layout:
    """How many workers with how many slots each; options are those of Celery's command line.

    A longer lease (seconds) is for scenes in which runs wait for a slot, without rescue.
    """

    workers: int = 2
    slots: int = 2
    options: tuple[str, ...] = ()
    lease: float = QUICK["LEASE_SECONDS"]
    environ: Mapping[str, str] = field(default_factory=dict)


def start_program(program: Program, output: BinaryIO) -> Running:
    """Start a program; Celery's and the site's are forked from a process that has loaded them."""
    environment = os.environ | dict(program.environment)
    imports = IMPORTS.get(program.command[2])
    # A library that is loaded before Python needs a process from nothing.
    if imports is None or "LD_PRELOAD" in environment:
        return start(program, output)
    words = program.command[1:]
    return Preloaded(
        words,
        environment,
        imports=imports,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
    )


def judged(url: str, tasks: Path, submits: Path | Sequence[SubmitEvent]) -> Verdict:
    """Have the judge look at the rows of this database and at logs; a bad verdict fails."""
    runs, attempts = read_rows(url)
    found = judge(
        task_events=read_task_events(tasks),
        submit_events=read_submit_events(submits) if isinstance(submits, Path) else submits,
        runs=runs,
        attempts=attempts,
    )
    assert found.ok, found.report()
    return found


class Processes:
    """Starts processes for one scene. `start_...` returns at once; `ready` waits for all."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.layout: Layout | None = None
        self.tasks = TaskLog(folder / "tasks.log")
        self.started: list[Process] = []
        self.urls: dict[str, str] = {}
        """Variables of all processes: the addresses of servers other than the tests' own."""

    def variables(self, **environ: str) -> dict[str, str]:
        """Return the variables of a process, beside those that a program of a stack has."""
        return {**os.environ, **environment(self.tasks.path), **self.urls, **environ}

    def manage(self, *words: str, **environ: str) -> Done:
        """Run manage.py to its end; the caller looks at how it ended."""
        return python("manage.py", *words, environ=self.variables(**environ))

    def start_worker(
        self,
        name: str = "worker",
        slots: int = 2,
        *,
        queue: str = "jobs",
        options: Sequence[str] = (),
        **environ: str,
    ) -> Process:
        """Start a worker; options are those of Celery's command line, and win over ours."""
        program = programs.job_worker(name, slots=slots, queue=queue)
        return self.start(program, options=(*ALONE, *options), **environ)

    def start_layout(self, layout: Layout) -> None:
        """Start the workers of several scenes, the system's worker and beat."""
        self.layout = layout
        lease = {"FAIRSHIFT_LEASE_SECONDS": str(layout.lease)}
        environ = {**lease, **layout.environ}
        for number in range(layout.workers):
            self.start_worker(f"shared-{number}", layout.slots, options=layout.options, **environ)
        self.start_system(**lease)
        self.start_beat()

    def start_system(self, **environ: str) -> Process:
        """Start the worker of the system's own tasks."""
        return self.start(programs.system_worker(), options=["--without-heartbeat"], **environ)

    def start_beat(self, **environ: str) -> Process:
        return self.start(programs.beat(), **environ)

    def start_system_and_beat(self, **environ: str) -> None:
        """Start what drives runs beside their workers."""
        self.start_system(**environ)
        self.start_beat(**environ)

    def start(self, program: Program, *, options: Sequence[str] = (), **environ: str) -> Process:
        """Start any program of a stack with the environment of the scene."""
        program = replace(
            program,
            command=[*program.command, *options],
            environment={
                **environment(self.tasks.path),
                **program.environment,
                **self.urls,
                **environ,
            },
        )
        folder = self.folder / str(len(self.started))
        stack = Stack([program], log_folder=folder, starter=start_program)
        log = folder / f"{program.name}.log"
        process = Process(program.name, stack, log, self.tasks)
        self.started.append(process)
        stack.start()
        return process

    def ready(self, *, seconds: float = 30) -> None:
        """Return when every process that is not dead yet works."""
        for process in self.started:
            if process.is_alive:
                process.ready(seconds=seconds)

    def python(self, code: str, **environ: str) -> subprocess.Popen[str]:
        """Start Python with Django set up: a web process that submits and dies, for example."""
        prelude = "import django; django.setup()\nimport tests.tasks\n"
        return Preloaded(
            ["-c", prelude + code],
            self.variables(**{"DJANGO_SETTINGS_MODULE": "config.settings", **environ}),
            imports=PROJECT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self, code: str, **environ: str) -> str:
        """Run code with Django, which must end well; return what it prints."""
        process = self.python(code, **environ)
        output, _ = process.communicate(timeout=600)
        assert process.returncode == 0, output
        return str(output)

    def all_alive(self) -> bool:
        return all(process.is_alive for process in self.started)

    def stop(self) -> None:
        """End every process at once; none is left."""
        for process in self.started:
            process.stop(grace_seconds=0)
        self.started.clear()

    def log_ends(self) -> str:
        return "\n".join(process.log_end() for process in self.started)
