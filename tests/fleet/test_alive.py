"""fleet/alive.py: the file that health checks look at."""

import os
from pathlib import Path

import pytest

from fleet.alive import touch


def test_it_sets_the_time_of_the_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The file is made at the first call; each later one makes it new again."""
    alive = tmp_path / "alive"
    monkeypatch.setenv("FAIRSHIFT_ALIVE_FILE", str(alive))
    touch()
    assert alive.exists()
    os.utime(alive, (0, 0))
    touch()
    assert alive.stat().st_mtime > 0


def test_without_the_variable_it_writes_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Also for an empty one, which counts as not given."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FAIRSHIFT_ALIVE_FILE", raising=False)
    touch()
    monkeypatch.setenv("FAIRSHIFT_ALIVE_FILE", "")
    touch()
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_cannot_be_written_stops_nothing(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The log says why the health check fails."""
    monkeypatch.setenv("FAIRSHIFT_ALIVE_FILE", "/proc/none/alive")
    touch()
    assert "health check" in caplog.text and "/proc/none/alive" in caplog.text
