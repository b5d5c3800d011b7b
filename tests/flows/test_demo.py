"""`manage.py demo` as a user starts it: real processes, real servers, judged by the devices."""

import json
import os
import re
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from jobs.management.stack.stack import free_port
from tests.flows.servers import own_servers
from tests.flows.web import status
from tests.state_dirs import new_state_dir, remove_state_dir
from tests.waiting import wait_for

pytestmark = pytest.mark.proof

PROJECT = Path(__file__).resolve().parents[2]
DEMO_SECONDS = 150.0
# The keeper of the embedded servers waits a few seconds for another process.
KEEPER_SECONDS = 20.0
SMALL = ("--devices", "60", "--slots", "4")


class World:
    """An installation of its own, and a mark by which its processes are found."""

    def __init__(self, state_dir: Path) -> None:
        self.mark = f"DEMO_TEST={uuid.uuid4()}"
        name, _, value = self.mark.partition("=")
        self.environment = {
            key: value
            for key, value in os.environ.items()
            if key not in {"DATABASE_URL", "REDIS_URL"}
        } | {"FAIRSHIFT_STATE_DIR": str(state_dir), name: value}

    def start(self, *options: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "manage.py", "demo", *SMALL, *ports(), *options],
            cwd=PROJECT,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            # A shell ignores SIGINT for background processes, and children inherit it.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        )

    def processes(self) -> list[str]:
        """Return the command lines of all processes that were started from here."""
        return [_command(pid) for pid in _pids() if self.mark in _environment(pid)]

    def is_gone(self) -> bool:
        """Say whether none of its processes is left."""
        return not self.processes()


def ports() -> list[str]:
    """Return options by which demos in several lanes do not ask for the same ports."""
    return [f"--{name}={free_port(0)}" for name in ("port", "flower-port")]


def _pids() -> Iterator[str]:
    return (entry for entry in os.listdir("/proc") if entry.isdigit())


def _environment(pid: str) -> list[str]:
    return _read(pid, "environ").split("\0")


def _command(pid: str) -> str:
    return f"{pid} " + _read(pid, "cmdline").replace("\0", " ")


def _read(pid: str, name: str) -> str:
    try:
        return Path("/proc", pid, name).read_text(errors="replace")
    except OSError:
        return ""  # it has just ended


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    """An installation for all scenes of a module, empty at first; afterwards nothing of it is left.

    Scenes that leave runs behind come last.
    """
    state_dir = new_state_dir()
    world = World(state_dir)
    yield world
    for line in world.processes():
        os.kill(int(line.split()[0]), signal.SIGKILL)
    remove_state_dir(state_dir)


def _is_good(verdict: dict[str, Any]) -> None:
    assert verdict["version"] == 42
    assert (verdict["devices"], verdict["lab_devices"]) == (60, 4)
    assert (verdict["verified"], verdict["doubled"]) == (64, 0)
    assert verdict["runs_recorded"] == 64
    assert verdict["checks"] > 0
    assert verdict["checks_doubled"] == 0
    assert verdict["retries"] >= verdict["failed_attempts"] > 0
    assert min(verdict["small_seconds"], verdict["large_seconds"]) > 0
    assert (verdict["workers"], verdict["slots"]) == (2, 4)
    upgrade = verdict["upgrade"]
    assert (upgrade["asked"], upgrade["upgraded"], upgrade["outside"]) == (24, 24, 0)
    assert (upgrade["held_for_approval"], upgrade["held_by_freeze"]) == (3, 3)
    assert len(upgrade["stopped"]) == 1


def _until(lines: Iterable[str], text: str) -> str:
    """Read lines up to the one with `text`; return all of them."""
    read = ""
    for line in lines:
        read += line
        if text in line:
            return read
    raise AssertionError(f"It ended before it said {text!r}:\n{read[-3000:]}")


def test_the_demo_ends_well_and_leaves_nothing(world: World) -> None:
    """Every device is verified, none doubled, every run recorded, and hours are kept.

    One rollout is stopped by a failure, with the address of its page, and resumed.
    Site and Flower answer at the printed addresses, with the printed login, until it is told to
    end. That it ends by itself with `--exit`, CI sees with the README's command.
    """
    demo = world.start("--json")
    assert demo.stdout is not None and demo.stderr is not None
    verdict = json.loads(demo.stdout.readline())
    _is_good(verdict)
    shown = _until(demo.stderr, "stays up")
    told = dict(re.findall(r"^  (Site|Flower|Login) +(.*)$", shown, re.MULTILINE))
    [stopped] = verdict["upgrade"]["stopped"]
    assert re.search(f"^Stopped: .*: {stopped}$", shown, re.MULTILINE)
    user, password = told["Login"].split()[0:3:2]
    assert status(told["Site"]) == 200, "it leads to the page to log in"
    assert status(stopped) == 200
    assert status(told["Flower"]) == 401
    assert status(told["Flower"], login=f"{user}:{password}") == 200
    demo.terminate()
    demo.communicate(timeout=300)
    assert demo.returncode == 0
    wait_for(world.is_gone, seconds=KEEPER_SECONDS, what="every process to end")


def test_interrupting_it_in_the_middle_leaves_nothing(world: World) -> None:
    """Ctrl-C while runs are under way ends every process."""
    demo = world.start("--devices", "3000", "--json")
    assert demo.stderr is not None
    _until(demo.stderr, "done,")
    demo.send_signal(signal.SIGINT)
    _, told = demo.communicate(timeout=300)
    assert demo.returncode == 130, told
    wait_for(world.is_gone, seconds=KEEPER_SECONDS, what="every process to end")


def test_a_verdict_that_is_late_says_what_hangs(world: World) -> None:
    """When time is up the runs that hang and the logs are shown, and the status is 1."""
    demo = world.start("--devices", "3000", "--deadline", "10", "--slots", "1", "--exit", "--json")
    out, err = demo.communicate(timeout=DEMO_SECONDS)
    assert demo.returncode == 1
    assert re.search("^Time is up|not ready within", err, re.MULTILINE), err[-3000:]
    if "Time is up" in err:
        assert json.loads(out.splitlines()[-1])["verified"] < 3004
    wait_for(world.is_gone, seconds=KEEPER_SECONDS, what="every process to end")


def test_a_process_that_ends_by_itself_ends_the_demo(world: World) -> None:
    """With its name, the place of its log, and the status 1."""
    demo = world.start("--json")
    assert demo.stderr is not None
    _until(demo.stderr, "stays up")
    [web] = [
        int(line.split()[0])
        for line in world.processes()
        if "gunicorn" in line and os.getpgid(int(line.split()[0])) == int(line.split()[0])
    ]
    os.kill(web, signal.SIGKILL)
    _, told = demo.communicate(timeout=300)
    assert demo.returncode == 1
    assert "web ended with -9. The end of " in told and "demo-logs/web.log" in told
    assert "Traceback" not in told
    wait_for(world.is_gone, seconds=KEEPER_SECONDS, what="every process to end")


def test_an_end_without_the_database_is_one_sentence(world: World) -> None:
    """Its jobs cannot be switched off there; every process ends all the same."""
    with own_servers() as servers:
        own = {"DATABASE_URL": servers.postgres.url, "REDIS_URL": servers.redis.url, "DEBUG": "1"}
        world.environment |= own
        try:
            demo = world.start("--json")
            assert demo.stderr is not None
            _until(demo.stderr, "stays up")
            servers.postgres.stop()
            demo.terminate()
            _, told = demo.communicate(timeout=300)
        finally:
            for name in own:
                del world.environment[name]
    assert demo.returncode == 1
    assert "PostgreSQL does not answer" in told and "Traceback" not in told
    wait_for(world.is_gone, seconds=KEEPER_SECONDS, what="every process to end")
