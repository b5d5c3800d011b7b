"""Jobs on their way to the children: those in the socket, and those that wait for room in it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Final

from fleet.pool.job import Job
from fleet.pool.job_socket import JobSocket
from fleet.pool.jobs import Jobs

AGAIN_SECONDS: Final = 0.1
"""The pause before a job is sent again for which there was no room, or no file descriptor."""


class Outbox:
    """Sends jobs in order. `later(seconds, callback)` sets a timer."""

    def __init__(
        self, jobs: Jobs, socket: JobSocket, *, later: Callable[[float, Callable[[], Any]], None]
    ) -> None:
        self._jobs, self._socket, self._later = jobs, socket, later
        self._waiting: deque[Job] = deque()
        self._is_closed = False

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, job: Job) -> None:
        """Send a job as soon as possible."""
        self._waiting.append(job)
        self.send()

    def add_later(self, job: Job) -> None:
        """Send a job again that its reader could not take."""
        self._waiting.append(job)
        self._later(AGAIN_SECONDS, self.send)

    def send(self) -> None:
        """Send the waiting jobs for which there is room."""
        while self._waiting and not self._is_closed:
            if not self._socket.send(self._waiting[0]):
                # A result makes room; without a file descriptor, none may come.
                self._later(AGAIN_SECONDS, self.send)
                return
            self._waiting.popleft()

    def unread(self) -> Mapping[int, Job | None]:
        """Return what is in the socket, by number; None retires its reader."""
        return self._socket.unread()

    def note_read(self, job: Job) -> None:
        """Forget a job that a child has read."""
        self._socket.forget(job.number)

    def has(self, number: int) -> bool:
        """Say whether a job waits here."""
        return any(job.number == number for job in self._waiting)

    def recall(self) -> None:
        """Read back the jobs that no child has read; they are sent again in the next turn."""
        self._waiting.extendleft(reversed(self._socket.take_back()))
        if self._waiting:
            self._later(0.0, self.send)

    def withdraw(self, job: Job) -> bool:
        """Take a job back; False if a child has read it."""
        if job not in self._waiting and job.number in self._socket.unread():
            self.recall()
        if job not in self._waiting:
            return False
        self._waiting.remove(job)
        self._jobs.drop(job)
        if job.on_withdrawn is not None:
            job.on_withdrawn()
        return True

    def drop(self, *, close: bool = False) -> None:
        """Give back all jobs that no child has read; `close`: send nothing more."""
        self._is_closed = self._is_closed or close
        self.recall()
        while self._waiting:
            job = self._waiting.popleft()
            self._jobs.drop(job)
            # Without `give_back`, it is from a stock queue, whose broker delivers it again.
            if job.give_back is not None:
                job.give_back()
