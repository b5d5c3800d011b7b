"""fleet/alive.py: the file that health checks look at."""

import os
from pathlib import Path

import pytest

from fleet.alive import touch


def test_it_sets_the_time_of_the_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Each call makes the file or its time new; without a variable, or a value, it writes none."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FAIRSHIFT_ALIVE_FILE", raising=False)
    touch()
    monkeypatch.setenv("FAIRSHIFT_ALIVE_FILE", "")
    touch()
    assert list(tmp_path.iterdir()) == []
    alive = tmp_path / "alive"
    monkeypatch.setenv("FAIRSHIFT_ALIVE_FILE", str(alive))
    touch()
    os.utime(alive, (0, 0))
    touch()
    assert alive.stat().st_mtime > 0


def test_a_file_that_cannot_be_written_stops_nothing(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The log says why the health check fails."""
    monkeypatch.setenv("FAIRSHIFT_ALIVE_FILE", "/proc/none/alive")
    touch()
    assert "health check" in caplog.text and "/proc/none/alive" in caplog.text
