"""Locks on files, which the kernel takes back when a process ends, however it ends."""

import fcntl
import os
from pathlib import Path
from typing import BinaryIO


def opened(path: Path) -> BinaryIO:
    """Return the file, which only its user can read, without a lock."""
    return os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600), "r+b")


def share_lock(path: Path) -> BinaryIO:
    """Return the file, locked beside other processes; wait for one that has it alone."""
    file = opened(path)
    fcntl.flock(file, fcntl.LOCK_SH)
    return file


def take_lock(path: Path) -> BinaryIO | None:
    """Return the file, empty and locked for us alone; None if another process has a lock."""
    file = opened(path)
    if not lock_alone(file):
        file.close()
        return None
    file.truncate(0)
    return file


def lock_alone(file: BinaryIO) -> bool:
    """Lock an open file for us alone; say whether no other process had a lock."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def unlock(file: BinaryIO) -> None:
    """Remove our lock of an open file."""
    fcntl.flock(file, fcntl.LOCK_UN)


def is_locked(path: Path) -> bool:
    """Say whether a process has the file locked for itself alone."""
    try:
        with path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except FileNotFoundError:
        pass
    return False
