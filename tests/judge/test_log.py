"""The logs outside the system: real processes write, some of them killed."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.judge.log import TaskLog, read_task_events
from tests.waiting import wait_for

ROOT = Path(__file__).parents[2]
WRITER = """
import itertools, sys
from tests.judge.log import TaskLog
log = TaskLog(sys.argv[1])
for number in range(int(sys.argv[2])) if sys.argv[2] != "ever" else itertools.count():
    log.start(run="r" * (number % 3000), attempt=number, token=1, task="tests.record")
"""


def writer(path: Path, lines: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", WRITER, str(path), lines], cwd=ROOT)


def test_events_come_back_as_written(tmp_path: Path) -> None:
    """A start and an end carry run, attempt, token, process, parent, times and outcome."""
    log = TaskLog(tmp_path / "tasks")
    facts = {"run": "run-1", "attempt": 2, "token": 3, "task": "tests.record"}
    log.start(**facts)
    log.end(**facts, outcome="raised ValueError")
    log.disturb(77, how="frozen")
    start, end, frozen = read_task_events(log.path)
    assert (start.event, start.run, start.attempt, start.token) == ("start", "run-1", 2, 3)
    assert (start.pid, start.parent_pid) == (os.getpid(), os.getppid())
    assert (end.event, end.outcome) == ("end", "raised ValueError")
    assert end.monotonic >= start.monotonic > 0 and end.wall > 1_700_000_000
    assert (frozen.event, frozen.pid, frozen.run) == ("frozen", 77, None)
    assert start.position < end.position < frozen.position


def test_lines_of_several_processes_do_not_mix(tmp_path: Path) -> None:
    """Four writers at once: every line is whole, and each writer's lines keep their order."""
    path = tmp_path / "tasks"
    writers = [writer(path, "500") for _ in range(4)]
    assert [process.wait(timeout=300) for process in writers] == [0] * 4
    events = read_task_events(path)
    for process in writers:
        own = [event.attempt for event in events if event.pid == process.pid]
        assert own == list(range(500))


def test_killed_writers_leave_a_readable_log(tmp_path: Path) -> None:
    """SIGKILL at any instant: complete lines stay, and other processes continue to write."""
    path = tmp_path / "tasks"
    for number in range(5):
        grown = size_of(path) + 100_000
        process = writer(path, "ever")
        try:
            wait_for(lambda grown=grown: size_of(path) > grown, seconds=30)
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait(timeout=300)
        TaskLog(path).start(run=f"after-{number}", attempt=1, token=1, task="")
    runs = [event.run for event in read_task_events(path)]
    assert [run for run in runs if run and run.startswith("after")] == [
        f"after-{number}" for number in range(5)
    ]


def size_of(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


@pytest.mark.parametrize("cut", [1, 4, 11, 40, 80])
def test_a_fragment_is_skipped(tmp_path: Path, cut: int) -> None:
    """A torn last line did not happen, nor does it spoil the line that follows it."""
    log = TaskLog(tmp_path / "tasks")
    log.start(run="run-1", attempt=1, token=1, task="")
    line = log.path.read_bytes()
    log.path.write_bytes(line + line[:cut])
    assert [event.run for event in read_task_events(log.path)] == ["run-1"]
    log.start(run="run-2", attempt=1, token=1, task="")
    assert [event.run for event in read_task_events(log.path)] == ["run-1", "run-2"]
