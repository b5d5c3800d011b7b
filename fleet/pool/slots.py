"""The slots of a worker, of which some are lent: short jobs wait in the pool beyond its slots."""

from __future__ import annotations

from typing import Any, Final

from fleet.pool.job import Job

SHORT_SECONDS: Final = 0.005
"""The longest expected run time of a job that may wait beyond the slots."""
AHEAD_SECONDS: Final = 0.02
"""The longest expected time of all short jobs in the pool, by free child."""
MAX_AHEAD: Final = 26
"""Most short jobs in the pool, by free child."""


class Slots:
    """Counts jobs in the pool by length, and the slots that were released before an end."""

    def __init__(self, semaphore: Any, *, children: int, most_jobs: int | None = None) -> None:
        self.children = children
        self._semaphore = semaphore
        # A recycled process ends after `most_jobs`: a job waits for one new process at most.
        self._most_ahead = MAX_AHEAD if most_jobs is None else min(MAX_AHEAD, most_jobs - 1)
        self._lent = 0
        self._to_release, self._is_releasing = 0, False
        self._count = self._short_count = 0
        self._short_seconds = 0.0

    def take(self, job: Job) -> None:
        """Count a job that has come into the pool."""
        self._count += 1
        self._count_short(job, 1)

    def lend(self, job: Job) -> None:
        """Release the slot of a job that has just come, if another one can use it."""
        if self._semaphore is None or job.expected > SHORT_SECONDS or not self._has_room():
            return
        self._lent += 1
        self._to_release += 1
        # A release hands the next job in, whose slot may be lent as well: no recursion.
        if not self._is_releasing:
            self._is_releasing = True
            try:
                while self._to_release:
                    self._to_release -= 1
                    self._semaphore.release()
            finally:
                self._is_releasing = False

    def note_elapsed(self, job: Job, seconds: float) -> None:
        """Count a short job as a long one once it has run for longer than SHORT_SECONDS."""
        if job.expected <= SHORT_SECONDS < seconds:
            self._count_short(job, -1)
            job.expected = float("inf")

    def leave(self, job: Job) -> None:
        """Count a job that has left the pool."""
        self._count -= 1
        self._count_short(job, -1)

    def end(self, job: Job) -> None:
        """Release the slot of a job that has left; or pay one back, if the pool has too many."""
        self.leave(job)
        if self._lent and (self._lent > self._count or not self._has_room()):
            self._lent -= 1
        elif self._semaphore is not None:
            self._semaphore.release()

    def retake(self, also: int) -> None:
        """Take slots for the jobs in the pool and some others, after Celery has released all."""
        if self._semaphore is not None:
            most, count = self._semaphore.initial_value, self._count + also
            self._lent, self._semaphore.value = max(0, count - most), max(0, most - count)

    def grow(self) -> None:
        """Have a child more."""
        self.children += 1
        if self._semaphore is not None:
            self._semaphore.grow()

    def shrink(self) -> None:
        """Have a child less."""
        self.children -= 1
        if self._semaphore is not None:
            self._semaphore.shrink()

    def clear(self) -> None:
        """Forget what waits for a slot."""
        if self._semaphore is not None:
            self._semaphore.clear()

    def _count_short(self, job: Job, count: int) -> None:
        if job.expected <= SHORT_SECONDS:
            self._short_count += count
            self._short_seconds += count * job.expected
        if not self._short_count:
            self._short_seconds = 0.0

    def _has_room(self) -> bool:
        free = self.children - (self._count - self._short_count)
        return (
            self._short_count < self._most_ahead * free
            and self._short_seconds < AHEAD_SECONDS * free
        )
