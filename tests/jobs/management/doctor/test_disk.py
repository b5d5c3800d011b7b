"""jobs/management/doctor/disk.py: a disk that is nearly full is reported, by its free space."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.core import checks

from jobs.management.doctor.disk import GIB, Room, folders, space


@pytest.mark.parametrize(
    ("free", "total", "is_short", "is_out"),
    [
        (50 * GIB, 100 * GIB, False, False),
        (9 * GIB, 100 * GIB, True, False),
        (20 * GIB, 1000 * GIB, False, False),  # a fiftieth, but much
        (GIB // 2, 100 * GIB, True, True),
        (GIB // 2, GIB, False, False),  # a small disk
        (0, GIB, True, True),
    ],
)
def test_the_limits(free: int, total: int, is_short: bool, is_out: bool) -> None:
    """Short by part and by size: a tenth of a large disk is much."""
    room = Room(free, total)
    assert (room.is_short, room.is_out) == (is_short, is_out)


def test_this_machine_has_room() -> None:
    """A folder that is missing, or cannot be reached, is no finding."""
    assert list(folders()) == []
    assert list(space("nothing", Path("/nonesuch"))) == []


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 1 MiB."""
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "none", str(tmp_path)],
        capture_output=True,
        check=False,
    )
    if mounted.returncode:
        pytest.skip("only root mounts a disk")
    yield tmp_path
    subprocess.run(["umount", str(tmp_path)], check=True)


@pytest.mark.proof
def test_a_disk_that_fills_up_is_reported(disk: Path) -> None:
    """As a warning, then as broken; the path and the room are named."""
    assert list(space("logs", disk)) == []
    filling = disk / "filling"
    filling.write_bytes(b"x" * 1_000_000)
    [found] = space("logs", disk)
    assert (found.id, found.level) == ("fairshift.D401", checks.WARNING)
    assert "0 MiB of 1 MiB left" in found.msg
    with pytest.raises(OSError, match="No space"):
        filling.write_bytes(b"x" * 2_000_000)
    [found] = space("logs", disk)
    assert (found.id, found.level) == ("fairshift.D401", checks.ERROR)
    assert str(disk) in found.msg
