"""`manage.py fleet run`: the processes of a whole small installation, in the foreground.

It starts them, prints what they log, restarts one that ends, and lets all of them end at SIGTERM.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import tempfile
import time
from argparse import ArgumentParser, ArgumentTypeError, _SubParsersAction
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from celery import current_app
from django.conf import settings
from django.core.management.base import CommandError

from jobs.client.terminal import say
from jobs.core.conf import plain_queues, setting
from jobs.management.arguments import number, whole
from jobs.management.stack.programs import beat, job_worker, notices_worker, system_worker
from jobs.management.stack.stack import Program, Stack, StackError

PROGRAMS: Final = ("jobs", "system", "notices", "beat")
LOOK_SECONDS: Final = 0.5
MOST_CHILDREN: Final = 256
LATE_SECONDS: Final = 60.0
"""A program whose own file for health checks is older, at least, is not healthy."""
LATE_HEARTBEATS: Final = 3
ENDED_WELL: Final = (0, -signal.SIGTERM)
"""Exit statuses after SIGTERM; the second is that of a process which was about to boot."""


def add_part(parts: _SubParsersAction[Any]) -> None:
    """Add the part to the command."""
    part = parts.add_parser(
        "run",
        help="run workers and beat in the foreground: a whole small installation",
        description=(
            "Runs a worker of jobs, one of Fairshift's own tasks, one of webhooks and mails, and a"
            " beat. Prints their logs, restarts what ends, and lets all end at SIGTERM. The exit"
            " status is 0 if all have ended by themselves then, else 1."
        ),
    )
    part.set_defaults(act_on=handle)
    add_options(part)


def add_options(part: ArgumentParser) -> None:
    """Add the options of the part, which another command may have as well."""
    part.add_argument(
        "--concurrency",
        type=whole(1, MOST_CHILDREN),
        default=os.cpu_count() or 1,
        help="processes that run jobs (default: as many as CPUs)",
    )
    part.add_argument(
        "--queues",
        help="of the jobs' worker, with commas (default: all of the app but Fairshift's own)",
    )
    part.add_argument(
        "--only",
        type=_names,
        default=PROGRAMS,
        metavar="NAMES",
        help=f"some of {', '.join(PROGRAMS)}, with commas (default: all)",
    )
    part.add_argument(
        "--grace",
        type=number(0, 86_400),
        default=60.0,
        help="seconds for running jobs to end after SIGTERM (default 60); others are killed, and"
        " run again elsewhere",
    )
    part.add_argument(
        "--health-file",
        type=Path,
        default=os.environ.get("FAIRSHIFT_ALIVE_FILE"),
        help="a file whose time is set while every process works (default: $FAIRSHIFT_ALIVE_FILE)",
    )
    part.add_argument(
        "--app",
        default=str(settings.SETTINGS_MODULE).partition(".")[0],
        help="of the Celery app, as for `celery --app` (default: the package of the settings)",
    )


def _names(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    if unknown := sorted(set(names) - set(PROGRAMS)):
        raise ArgumentTypeError(f"{', '.join(unknown)}: known are {', '.join(PROGRAMS)}")
    if not names:
        raise ArgumentTypeError(f"is empty: known are {', '.join(PROGRAMS)}")
    return names


def handle(given: dict[str, Any], *, beside: Sequence[Program] = ()) -> None:
    """Run until SIGTERM or SIGINT; other programs may run beside those of the options."""
    with tempfile.TemporaryDirectory(prefix="fairshift-") as folder:
        files = {name: Path(folder) / name for name in given["only"]}
        stack = Stack([*beside, *_programs(given, files)], log_folder=None, restart=True)
        health = _Health(given["health_file"], files.values())
        stop = _Stop()
        try:
            stack.start()
            is_said = False
            while not stop.is_asked:
                _print_lines(stack)
                stack.refuse_bad_starts()
                stack.watch()
                health.look()
                if not is_said and stack.was_ready:
                    say("Everything runs. Ctrl-C or SIGTERM ends it.", flush=True)
                    is_said = True
                _reap_orphans(stack)
            is_clean = _stop(stack, within=given["grace"], is_impatient=lambda: stop.is_impatient)
        except StackError as error:
            raise CommandError(str(error)) from error
        finally:
            stack.stop(grace_seconds=0)
    sys.exit(0 if is_clean else 1)


def _programs(given: dict[str, Any], files: dict[str, Path]) -> list[Program]:
    own = {*plain_queues(), setting("INBOX_QUEUE")}
    queues = given["queues"] or ",".join(
        name for name in current_app.amqp.queues if name not in own
    )
    made: dict[str, Callable[..., Program]] = {
        "jobs": partial(job_worker, "jobs", slots=given["concurrency"], queue=queues),
        "system": partial(system_worker, queue=setting("SYSTEM_QUEUE")),
        "notices": partial(notices_worker, queue=setting("NOTICES_QUEUE")),
        "beat": beat,
    }
    return [
        made[name](
            environment={"FAIRSHIFT_ALIVE_FILE": str(files[name]), "PYTHONUNBUFFERED": "1"},
            app=given["app"],
        )
        for name in PROGRAMS
        if name in files
    ]


class _Stop:
    """Whether SIGTERM or SIGINT has come, and a second one."""

    def __init__(self) -> None:
        self.is_asked = self.is_impatient = False
        for name in (signal.SIGTERM, signal.SIGINT):
            signal.signal(name, self._came)

    def _came(self, *_signal: Any) -> None:
        self.is_asked, self.is_impatient = True, self.is_asked


class _Health:
    """The file for health checks: its time is set while the files of all programs are fresh."""

    def __init__(self, file: Path | None, of_programs: Sequence[Path] | Any) -> None:
        self._file = file
        self._of_programs = list(of_programs)
        self._late = max(LATE_SECONDS, LATE_HEARTBEATS * setting("HEARTBEAT_SECONDS"))

    def look(self) -> None:
        if self._file is not None and all(map(self._is_fresh, self._of_programs)):
            self._file.touch()

    def _is_fresh(self, file: Path) -> bool:
        try:
            return time.time() - file.stat().st_mtime < self._late
        except FileNotFoundError:
            return False


def _print_lines(stack: Stack) -> None:
    """Wait a moment for lines of the programs, and print them with the program's name."""
    select.select(stack.pipes(), [], [], LOOK_SECONDS)
    for name, line in stack.new_lines():
        # In JSON it is a member.
        say(f'{{"program": "{name}", {line[1:]}' if line.startswith('{"') else f"{name:7} | {line}")
    sys.stdout.flush()


def _stop(stack: Stack, *, within: float, is_impatient: Callable[[], bool]) -> bool:
    """Let all programs end; say whether they did so in time and well."""
    say(f"Stopping: running jobs have {within:g} s to end.")
    stack.ask_to_stop()
    deadline = time.monotonic() + within
    while None in stack.statuses().values():
        if time.monotonic() >= deadline or is_impatient():
            break
        _print_lines(stack)
    for name, status in stack.statuses().items():
        if status not in ENDED_WELL:
            say(f"{name} is killed." if status is None else f"{name} ended with {status}.")
    return all(status in ENDED_WELL for status in stack.statuses().values())


def _reap_orphans(stack: Stack) -> None:
    """As process 1 of a container: remove what other processes have left behind."""
    if os.getpid() != 1:
        return
    ours = {stack.pid(name) for name in stack.statuses()}
    while True:
        try:
            found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return
        if found is None or found.si_pid in ours:
            return
        os.waitpid(found.si_pid, 0)
