"""A lock on a file, which the holder of the lock may remove."""

import fcntl
import os
import time
from contextlib import suppress
from pathlib import Path


def take_lock(path: Path) -> int | None:
    """Return the descriptor of the locked file; None if another process holds the lock."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # The holder may have removed the file between our open and our lock.
        if os.path.samestat(os.fstat(descriptor), path.stat()):
            return descriptor
    except (BlockingIOError, FileNotFoundError):
        pass
    os.close(descriptor)
    return None


def await_end(path: Path, *, seconds: float) -> None:
    """Return when the process that has the lock, if any, has ended; TimeoutError if it is late."""
    deadline = time.monotonic() + seconds
    with suppress(FileNotFoundError), path.open() as lock:
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise TimeoutError(f"{path} is still locked after {seconds:.0f} s") from None
                time.sleep(0.02)
            else:
                return
