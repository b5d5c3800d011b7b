"""The logs outside the system: what a SIGKILL leaves of a line."""

from pathlib import Path

import pytest

from tests.judge.log import TaskLog, read_task_events


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
