"""`manage.py fleet run` under load: its processes are killed, it is killed, and it is stopped."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from jobs.management.stack.tether import die_with_parent
from tests.chaos.tasks import noted
from tests.chaos.world import TASKS, Caller
from tests.compose.rooms import may_make_rooms
from tests.flows.installation import ENDED, OPEN, Installation, installed
from tests.flows.processes import ROOT
from tests.processes import children, descendants, is_running
from tests.waiting import wait_for

pytestmark = pytest.mark.proof

PROGRAMS = ("jobs", "system", "notices", "beat")
# As long as a busy machine may need, and a heartbeat may wait there.
GRACE_SECONDS = 300
LEASE_SECONDS = 30
AS_FIRST_PROCESS = ("unshare", "--pid", "--fork", "--mount-proc", "--kill-child")


class FleetRun:
    """The command, and two processes that submit runs and call plain tasks."""

    def __init__(self, installation: Installation) -> None:
        self.installation = installation
        self.log = installation.folder / "fleet-run.log"
        self._health = installation.folder / "health"
        self._environ = installation.variables(
            FAIRSHIFT_TASKS=TASKS, FAIRSHIFT_LEASE_SECONDS=str(LEASE_SECONDS)
        )
        self._submitter = installation.submitter(
            *("--count", "100000", "--pause", "0.5", "--seconds", "0.3")
        )
        self._caller = Caller(installation)
        self._calls: list[str] = []

    def start(self, *wrapper: str) -> None:
        """Start it, alone or by a wrapper; return when it says that all of its programs work."""
        self._health.unlink(missing_ok=True)
        words = ["fleet", "run", "--concurrency", "2", "--grace", str(GRACE_SECONDS)]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [*wrapper, sys.executable, "manage.py", *words, "--health-file", self._health],
                cwd=ROOT,
                env=self._environ,
                stdout=log,
                stderr=log,
                preexec_fn=die_with_parent(signal.SIGKILL),
            )
        wait_for(self._is_healthy, seconds=60, what="all programs to work")
        own = self._process.pid
        self.pid = children(own).pop() if wrapper else own

    def _is_healthy(self) -> bool:
        assert self._process.poll() is None, self.end()
        return self._health.exists()

    def program(self, name: str) -> int:
        """Return the process id of a program; 0 while it is down."""
        wanted = b"\0beat\0" if name == "beat" else f"\0{name}@%h\0".encode()
        return next((pid for pid in children(self.pid) if wanted in _words(pid)), 0)

    def kill(self, name: str) -> None:
        """Kill a program's main process; return when another one is there and work goes on."""
        pid = self.program(name)
        for each in (pid, *descendants(pid)):
            self.installation.tasks.disturb(_pid_inside(each), how="killed")
        os.kill(pid, signal.SIGKILL)
        wait_for(lambda: self.program(name) not in (0, pid), what=f"another {name}")
        self.goes_on()

    def kill_itself(self) -> set[int]:
        """Kill the command alone; return the processes that it has left."""
        left = descendants(self.pid)
        self._process.kill()
        self._process.wait()
        return left

    def goes_on(self) -> None:
        """Return when runs and plain tasks have ended that were asked for after this call."""
        began = self.installation.now()
        self._calls += self._call(20)
        query = f"{ENDED} AND created_at > '{began}'"
        wait_for(lambda: self.installation.count(query) > 0, seconds=60, what="a new run to end")
        wait_for(self._all_noted, seconds=60, what="plain tasks to end")

    def _call(self, count: int) -> list[str]:
        first = len(self._calls)
        answer = self._caller.ask("call", task="chaos.note", count=count, pause=0, first=first)
        return list(answer["confirmed"])

    def _all_noted(self) -> bool:
        return set(self._calls) <= set(noted(self.installation.folder))

    def stop(self) -> int:
        """Send SIGTERM in the middle of the work; return the exit status."""
        self._calls += self._call(200)
        os.kill(self.pid, signal.SIGTERM)
        return self._process.wait(2 * GRACE_SECONDS)

    def drain(self) -> None:
        """Return when all that was asked for has ended; nothing more is submitted."""
        self._submitter.stop()
        self._submitter.waits()
        wait_for(lambda: not self.installation.count(OPEN), seconds=60, what="every run to end")
        wait_for(self._all_noted, seconds=60, what="plain tasks to end")

    def doubled(self) -> list[str]:
        """Return the plain tasks that have run more than once."""
        left = noted(self.installation.folder)
        return [name for name in set(left) if left.count(name) > 1]

    def end(self) -> str:
        """Return the last lines that it has printed."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-60:])

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        self._submitter.end()
        self._caller.kill()


@pytest.fixture
def fleet_run(tmp_path: Path) -> Iterator[FleetRun]:
    with installed(tmp_path, runs=False) as installation:
        run = FleetRun(installation)
        try:
            yield run
        finally:
            run.close()


def test_kills_lose_nothing(fleet_run: FleetRun) -> None:
    """Of each process in turn, and of the command itself, whose processes then end by themselves.

    Every run succeeds, and starts again only for a lost lease; every plain task runs. After a kill
    of the command no process of it stays, and it may be started again at once. At SIGTERM it ends
    by itself, which its exit status says.
    """
    fleet_run.start()
    fleet_run.goes_on()
    for name in PROGRAMS:
        fleet_run.kill(name)
    left = fleet_run.kill_itself()
    fleet_run.start()
    wait_for(lambda: not any(map(is_running, left)), seconds=60, what="what was left to end")
    fleet_run.goes_on()
    assert fleet_run.stop() == 0, fleet_run.end()
    fleet_run.start()
    fleet_run.drain()
    verdict = fleet_run.installation.verdict()
    assert verdict.figures["runs"] > 20, verdict.figures


@pytest.mark.skipif(not may_make_rooms(), reason="needs root, and the kernel's namespaces")
def test_as_the_first_process_of_a_container(fleet_run: FleetRun) -> None:
    """It removes orphans that have ended, and SIGTERM lets all of it end: no work is done twice."""
    fleet_run.start(*AS_FIRST_PROCESS)
    assert _pid_inside(fleet_run.pid) == 1
    # Not `jobs`: what it has would run again.
    fleet_run.kill("system")
    wait_for(lambda: all(map(is_running, descendants(fleet_run.pid))), what="orphans to be removed")
    assert fleet_run.stop() == 0, fleet_run.end()
    fleet_run.start(*AS_FIRST_PROCESS)
    fleet_run.drain()
    verdict = fleet_run.installation.verdict()
    assert verdict.figures["starts"] == verdict.figures["runs"] > 20, verdict.figures
    assert fleet_run.doubled() == []


def _pid_inside(pid: int) -> int:
    """Return the id that a process has in its own namespace."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(re.findall(r"^NSpid:.*\t(\d+)$", status, re.MULTILINE)[0])


def _words(pid: int) -> bytes:
    """Return a process's command line; nothing when it has ended."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""
