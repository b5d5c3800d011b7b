"""Workers and beats of scenes, forked from a process that has imported the libraries.

Imports of libraries are half of a boot. Here Python's own fork server has done them. Each process
still loads settings, apps and our code for itself, from its own environment: nothing of ours is
imported here.
"""

from __future__ import annotations

import ctypes
import gc
import multiprocessing
import os
import runpy
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from multiprocessing.context import ForkServerProcess
from typing import BinaryIO, Final

LIBRARIES: Final = (
    *("celery.__main__", "celery.bin.celery", "celery.apps.worker", "celery.apps.beat"),
    *("celery.worker.consumer", "celery.concurrency.prefork", "celery.fixups.django"),
    *("kombu.transport.redis", "psycopg", "psycopg_pool", "structlog", "structlog.dev"),
    *("pydantic.fields", "pydantic.types", "pydantic.json_schema", "annotated_types"),
    *("celery.worker.autoscale", "celery.concurrency.asynpool", "django.test", "requests"),
    *("django.contrib.postgres.fields", "django.contrib.postgres.indexes"),
    *("pydantic", "icalendar", "cronsim", "cron_descriptor", "sqlparse", "tzlocal", "urllib3"),
    *("django.core.management", "django.db.models", "django.db.backends.postgresql.base"),
    *("django.contrib.admin", "django.forms", "django.views.generic", "django.template.loader"),
)
PR_SET_PDEATHSIG: Final = 1


class Preloaded:
    """A running process, with the part of `subprocess.Popen` that a stack uses."""

    def __init__(
        self, command: Sequence[str], environment: Mapping[str, str], output: BinaryIO
    ) -> None:
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(list(LIBRARIES))
        arguments = (list(command), dict(environment), output.name)
        self._process: ForkServerProcess = context.Process(
            target=_become, args=arguments, daemon=True
        )
        self._process.start()
        assert self._process.pid is not None
        self.pid = self._process.pid
        self._wait_for_session()

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def poll(self) -> int | None:
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        self._process.join(timeout)
        if (code := self.returncode) is None:
            raise subprocess.TimeoutExpired(str(self.pid), timeout or 0)
        return code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def _wait_for_session(self) -> None:
        """Return when it leads its group: a kill of the group finds it from now on."""
        with suppress(ProcessLookupError):
            while self.poll() is None and os.getpgid(self.pid) != self.pid:
                time.sleep(0.001)


def _become(command: list[str], environment: dict[str, str], output: str) -> None:
    """Run a module as `python -m` does, in a session and an environment of its own."""
    gc.freeze()  # else the collector would visit, and so copy, what the fork shares
    os.setsid()
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGTERM), 0, 0, 0)
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    sys.dont_write_bytecode = bool(environment.get("PYTHONDONTWRITEBYTECODE"))
    opened = os.open(output, os.O_WRONLY | os.O_APPEND)
    os.dup2(opened, 1)
    os.dup2(opened, 2)
    multiprocessing.current_process().name = "MainProcess"  # as its log lines have it
    module, *sys.argv[1:] = command
    runpy.run_module(module, run_name="__main__", alter_sys=True)
