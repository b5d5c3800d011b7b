"""State folders of the servers of tests."""

import os
import shutil
import tempfile
from contextlib import redirect_stdout
from pathlib import Path
from typing import Final

MEMORY: Final = Path("/dev/shm")
ROOM: Final = 8 * 2**30
"""Bytes that a folder in memory has free if it is used: many times what a run takes."""


def new_state_dir() -> Path:
    """Return a new state folder that the servers' user can reach, also as root.

    A lane's one is in memory if there is room: a twentieth faster, commits do not wait for a disk.
    """
    is_lane = "PYTEST_XDIST_WORKER" in os.environ
    in_memory = is_lane and MEMORY.is_dir() and shutil.disk_usage(MEMORY).free >= ROOM
    path = Path(tempfile.mkdtemp(prefix="fairshift-test-", dir=MEMORY if in_memory else None))
    path.chmod(0o755)
    # WhiteNoise warns in each test process if there is none.
    (path / "static").mkdir()
    return path


def remove_state_dir(path: Path) -> None:
    """Stop the servers that use this state folder, if any, and remove it."""
    stop_servers(path)
    shutil.rmtree(path)


def stop_servers(path: Path) -> None:
    """Stop the servers that use this state folder, if any."""
    # Not before: this module is loaded before the project. Not as a command, whose start costs
    # half a second of CPU time.
    from config.embedded.__main__ import stop
    from config.embedded.places import Places

    with redirect_stdout(None):
        stop(Places(path))


def data_in(path: Path) -> Path:
    """Return the folder of PostgreSQL's data in a state folder."""
    from config.embedded.places import Places
    from config.embedded.postgres import data_folder

    return data_folder(Places(path))
