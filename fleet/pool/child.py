"""A child of the pool, as its main process knows it."""

from __future__ import annotations

import math
import os
import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from billiard import Process
from billiard.pool import EX_FAILURE

from fleet.pool.row import BOOTING, Row

if TYPE_CHECKING:
    from fleet.pool.job import Job
    from fleet.pool.loop import Loop


class Child:
    """A process, its row, and the job that it is known to run."""

    def __init__(self, loop: Loop, *, index: int, boot_try: int) -> None:
        self.row: Row = loop.row
        self.stack_file = loop.stack_file
        self.index, self.boot_try = index, boot_try
        self.job: Job | None = None
        self.terminated: Job | None = None
        """The job for which the process was terminated."""
        self.ends_as_told = False
        self.done_count = 0
        self.kill_at = math.inf
        """When it is killed if it has not followed a milder signal by then."""
        self.deaf_looks = 0
        """Looks in a row at which it was idle and did not read a job; `_seen` is its last one."""
        self._seen = BOOTING
        self.status: int | None = None
        """The exit status, once it has ended and is reaped."""
        self.created_at = time.monotonic()
        process = Process(target=loop)
        process.name = process.name.replace("Process", "PoolWorker")
        process.daemon = True
        process.index = index
        process.start()
        self.process = process
        self.pid = int(process.pid)

    @property
    def has_booted(self) -> bool:
        return self.row.number != BOOTING

    @property
    def sentinel(self) -> int:
        """The descriptor that can be read when the process has ended."""
        return int(self.process.sentinel)

    def has_ended(self) -> bool:
        """Say whether the process has ended; then `status` is known."""
        if self.status is None:
            self.status = self.process.exitcode
        if self.status is None and state_of(self.pid) == "Z":
            # A moment ago, or another library has reaped it, and the exit status is unknown.
            status = self.process.exitcode
            self.status = EX_FAILURE if status is None else status
        return self.status is not None

    def kill(self, number: int, *, group: bool = False) -> None:
        """Send a signal; `group`: also to those that a task has put into the child's group."""
        with suppress(ProcessLookupError):
            if group and os.getpgid(self.pid) == self.pid:
                os.killpg(self.pid, number)
            else:
                os.kill(self.pid, number)

    def kill_if_due(self) -> None:
        """Kill a process that has not followed a milder signal in time."""
        if time.monotonic() >= self.kill_at and not self.has_ended():
            self.kill(signal.SIGKILL, group=True)

    def look_if_deaf(self, *, is_deaf: bool) -> int:
        """Note whether a job waits for it; return at how many looks in a row it has noted none."""
        number = self.row.number
        is_still = is_deaf and self.has_booted and number == self._seen
        self.deaf_looks, self._seen = (self.deaf_looks + 1 if is_still else 0), number
        return self.deaf_looks


def state_of(pid: int) -> str:
    """Return the letter of a process's state, as `ps` has it: S sleeps, Z has ended or is gone.

    A question mark if that is unknown: no file descriptor is left, for example.
    """
    try:
        # The name, in brackets, may hold anything.
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0]
    except (FileNotFoundError, ProcessLookupError):
        return "Z"
    except OSError:
        return "?"
