"""The stacks of a child, which it writes into a file when it gets a signal.

`faulthandler` writes them in C: also while the child sleeps, or is in a call of C that holds the
GIL. The task goes on: Python repeats a system call that a signal has interrupted (PEP 475).
"""

from __future__ import annotations

import faulthandler
import os
import signal
import time
from contextlib import suppress
from typing import IO, TYPE_CHECKING, Final
from weakref import WeakSet

if TYPE_CHECKING:
    from fleet.pool.child import Child

SIGNAL: Final = signal.SIGURG
"""Celery and billiard use it nowhere, and it does nothing in a process without a handler."""
PATIENCE_SECONDS: Final = 2.0
"""How long a child has to write its stacks: it may wait for a processor."""
PAUSE_SECONDS: Final = 0.05
MOST_BYTES: Final = 65_536
_CALLER: Final = "/fleet/pool/copies.py"
"""The file of the frame that calls the function of a run's task."""

_files: WeakSet[IO[bytes]] = WeakSet()


def stack_file() -> IO[bytes] | None:
    """Return a file for the stacks of a child that is about to be forked; None if there is none."""
    try:
        made = os.fdopen(os.memfd_create("stacks"), "r+b", buffering=0)
    except (OSError, AttributeError):
        # Too many open files, or no Linux.
        return None
    _files.add(made)
    return made


def install(own: IO[bytes] | None) -> None:
    """Write into this file on the signal, in this child; close those of its siblings."""
    for file in [file for file in _files if file is not own]:
        file.close()
    if own is not None:
        faulthandler.register(SIGNAL, file=own, all_threads=True, chain=False)


def stacks_of(child: Child) -> str:
    """Return the stacks of all threads of a child, its task's first; empty if it writes none.

    The task's stack ends where its function is called. Waits for up to PATIENCE_SECONDS.
    If it has read another job by then, they may be that one's.
    """
    file = child.stack_file
    if file is None:
        return ""
    os.ftruncate(file.fileno(), 0)
    # The child shares the position.
    os.lseek(file.fileno(), 0, os.SEEK_SET)
    with suppress(ProcessLookupError):
        os.kill(child.pid, SIGNAL)
    until = time.monotonic() + PATIENCE_SECONDS
    before, text = b"", b""
    while time.monotonic() < until and (not text or text != before):
        time.sleep(PAUSE_SECONDS)
        before, text = text, os.pread(file.fileno(), MOST_BYTES, 0)
    return _current_first(text.decode(errors="replace"))


def _current_first(text: str) -> str:
    """Return stacks with that of the main thread first: it runs the task, and got the signal."""
    threads = [part.strip() for part in text.split("\n\n") if part.strip()]
    threads.sort(key=lambda part: not part.startswith("Current thread"))
    return "\n\n".join([*map(_of_task, threads[:1]), *threads[1:]])


def _of_task(thread: str) -> str:
    """Return a stack without the frames of those that call the task; whole if there is no task."""
    lines = thread.splitlines()
    # The outermost call: the task may call others, as by Celery's `apply`.
    calls = [number for number, line in enumerate(lines) if _CALLER in line]
    return "\n".join(lines[: calls[-1]]) if calls else thread
