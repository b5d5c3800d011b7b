"""Python processes of tests, forked from one that has imported what they need.

Imports are most of a start. Python's own fork server has imported the libraries. From it come the
processes that start others: one that has loaded nothing of ours, for programs whose start is the
matter; and one for each environment that has loaded settings, apps and our code there.
"""

import atexit
import ctypes
import gc
import importlib
import multiprocessing
import os
import runpy
import signal
import subprocess
import sys
import time
import types
from collections.abc import Mapping, Sequence
from multiprocessing.connection import Connection, wait
from multiprocessing.reduction import recv_handle, send_handle
from pathlib import Path
from threading import Lock
from typing import Any, Final

LIBRARIES: Final = (
    *("celery.__main__", "celery.bin.celery", "celery.apps.worker", "celery.apps.beat"),
    *("celery.worker.consumer", "celery.concurrency.prefork", "celery.fixups.django"),
    *("celery.worker.consumer.delayed_delivery", "celery.worker.strategy", "celery.app.control"),
    *("celery.app.amqp", "celery.app.events", "celery.app.log", "celery.contrib.django.task"),
    *("billiard.heap", "billiard.popen_fork", "billiard.sharedctypes", "billiard.synchronize"),
    *("kombu.transport.redis", "psycopg", "psycopg_pool", "structlog", "structlog.dev"),
    *("pydantic.fields", "pydantic.types", "pydantic.json_schema", "annotated_types"),
    *("celery.worker.autoscale", "celery.concurrency.asynpool", "django.test", "requests"),
    *("django.contrib.postgres.fields", "django.contrib.postgres.indexes"),
    *("pydantic", "icalendar", "cronsim", "cron_descriptor", "sqlparse", "tzlocal", "urllib3"),
    *("django.core.management", "django.db.models", "django.db.backends.postgresql.base"),
    *("django.contrib.admin", "django.forms", "django.views.generic", "django.template.loader"),
)
PROJECT: Final = (
    *("config", "jobs.wiring", "jobs.tasks", "jobs.system.beat"),
    *("fleet.worker.events", "fleet.worker.leasing", "fleet.worker.node"),
)
"""What workers, beats and submitters import, once the apps are loaded."""
SITE: Final = (*PROJECT, "config.wsgi")
"""What web processes import."""
OF_ONE_PROCESS: Final = ("JUDGE_LOG", "PYTEST_CURRENT_TEST", "FAULT", "FAULT_ONCE_DIR")
"""Variables that differ from test to test. Nothing reads them while it is imported, but the crash
points, which read theirs again after the fork."""
CRASH_POINTS: Final = "fleet.crash_points"
KEPT: Final = 3
"""Environments without a process that stay loaded."""
ROOT: Final = Path(__file__).parents[1]
PR_SET_PDEATHSIG: Final = 1
INHERITED: Final = (0, 1, 2)


class Preloaded(subprocess.Popen):
    """A Python process with these words after `python`; in its own session, it ends with us.

    With `imports`, settings and apps are loaded before it is forked; that must not depend on
    OF_ONE_PROCESS. Other arguments are those of `subprocess.Popen` for its streams.
    """

    def __init__(
        self,
        words: Sequence[str],
        environment: Mapping[str, str],
        *,
        imports: Sequence[str] = (),
        **streams: Any,
    ) -> None:
        self._parent = _parent_in(environment, imports)
        super().__init__(words, env=environment, **streams)

    def _execute_child(self, words: Sequence[str], *given: Any) -> None:
        """Fork it in place of an exec; the numbers of its streams' ends are among the arguments."""
        environment, ends = given[5], given[9:15]
        inside = (ends[0], ends[3], ends[5])
        streams = [end if end >= 0 else own for end, own in zip(inside, INHERITED, strict=True)]
        self.pid = self._parent.start(list(words), dict(environment), streams)
        self._child_created = True
        self._close_pipe_fds(*ends)

    def _internal_poll(self, *_given: Any, **_more: Any) -> int | None:
        self._try_wait(os.WNOHANG)
        return self.returncode

    def _try_wait(self, flags: int) -> tuple[int, int]:
        """Ask its parent, which we are not."""
        if self.returncode is None:
            pid, status = self._parent.wait(self.pid, flags)
            if pid == self.pid:
                self._handle_exitstatus(status)
            return pid, status
        return self.pid, 0


class _Parent:
    """A process that starts others."""

    def __init__(self, environment: Mapping[str, str], imports: Sequence[str]) -> None:
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(list(LIBRARIES))
        self._asked, served = context.Pipe()
        given = (served, dict(environment), list(imports))
        self._process = context.Process(target=_serve, args=given, daemon=True)
        self._process.start()
        served.close()
        self.is_loaded: bool = self._asked.recv()
        self.running: set[int] = set()
        self._lock = Lock()

    def start(self, words: list[str], environment: dict[str, str], streams: list[int]) -> int:
        """Start a process; return its id. It leads its group already."""
        with self._lock:
            self._asked.send((words, environment))
            for number in streams:
                send_handle(self._asked, number, self._process.pid)
            pid: int = self._asked.recv()
            self.running.add(pid)
        return pid

    def wait(self, pid: int, flags: int) -> tuple[int, int]:
        """Return what `os.waitpid` answers about a process."""
        if not flags:
            ended = os.pidfd_open(pid)
            wait([ended])
            os.close(ended)
        with self._lock:
            self._asked.send((pid, flags))
            found, status = self._asked.recv()
            self.running.discard(found)
        return found, status

    def end(self) -> None:
        """End the parent, of which nothing runs any more."""
        self._asked.close()
        self._process.join()


_parents: dict[object, _Parent] = {}


def _parent_in(environment: Mapping[str, str], imports: Sequence[str]) -> _Parent:
    """Return the parent for an environment; end those that were not used for longest."""
    if not imports:
        return _parents.get(None) or _parents.setdefault(None, _Parent({}, ()))
    common = {name: value for name, value in environment.items() if name not in OF_ONE_PROCESS}
    key = (frozenset(common.items()), tuple(imports))
    found = _parents.pop(key, None) or _Parent(common, imports)
    if not found.is_loaded:
        # What is wrong with this environment, the process itself is to say.
        found.end()
        return _parent_in(environment, ())
    _parents[key] = found
    idle = [key for key, one in _parents.items() if key and one is not found and not one.running]
    for old in idle[:-KEPT]:
        _parents.pop(old).end()
    return found


def _serve(asked: Connection, environment: dict[str, str], imports: Sequence[str]) -> None:
    """Import what is wanted, then start a process for each request, until nobody asks any more."""
    os.setsid()
    os.chdir(ROOT)
    _die_with_parent()
    asked.send(_load(environment, imports) if imports else True)
    gc.freeze()  # else the collector would visit, and so copy, what the forks share
    while True:
        try:
            first, second = asked.recv()
        except EOFError:
            return
        if isinstance(first, int):
            asked.send(os.waitpid(first, second))
            continue
        streams = [recv_handle(asked) for _ in INHERITED]
        pid = os.fork()
        if pid == 0:
            asked.close()
            _become(first, second, streams)
            return
        for number in streams:
            os.close(number)
        while os.getpgid(pid) != pid:  # a kill of its group finds it from now on
            time.sleep(0.001)
        asked.send(pid)


def _load(environment: Mapping[str, str], imports: Sequence[str]) -> bool:
    """Load settings, apps and modules in an environment; say whether that worked."""
    _enter(environment)
    try:
        importlib.import_module(imports[0])
        importlib.import_module("django").setup()
        for module in imports[1:]:
            importlib.import_module(module)
        # Each worker reads the migrations at its start: a quarter of its CPU time until then.
        importlib.import_module("django.db.migrations.loader").MigrationLoader(None)
    except Exception:
        return False
    return True


def _enter(environment: Mapping[str, str]) -> None:
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    sys.dont_write_bytecode = bool(environment.get("PYTHONDONTWRITEBYTECODE"))


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGTERM), 0, 0, 0)


def _become(words: list[str], environment: dict[str, str], streams: list[int]) -> None:
    """Run what `python` with these words would, in a session of its own."""
    os.setsid()
    _die_with_parent()
    _enter(environment)
    for number, own in zip(streams, INHERITED, strict=True):
        os.dup2(number, own)
        os.close(number)
    sys.stdin = os.fdopen(0, closefd=False)
    multiprocessing.current_process().name = "MainProcess"  # as its log lines have it
    if loaded := sys.modules.get(CRASH_POINTS):
        loaded._armed = loaded.read_faults(os.environ)
    try:
        _run(*words)
    finally:
        atexit._run_exitfuncs()


def _run(first: str, *rest: str) -> None:
    if first == "-m":
        sys.argv = list(rest)
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    elif first == "-c":
        sys.argv = ["-c", *rest[1:]]
        sys.modules["__main__"] = main = types.ModuleType("__main__")
        exec(compile(rest[0], "<string>", "exec"), main.__dict__)
    else:
        sys.argv = [first, *rest]
        runpy.run_path(first, run_name="__main__")
