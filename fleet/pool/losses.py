"""Keeps jobs when a child ends, the pool closes, or the broker's connection is lost."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, Final

from billiard.pool import RUN

from fleet.callbacks import guarded, note_failure
from fleet.pool.booting import Booting
from fleet.pool.lookahead import Lookahead, has_reached
from fleet.pool.reconciling import Reconciling

REAP_SECONDS: Final = 0.02
REAP_LOOKS: Final = 50


class Losses(Lookahead, Booting, Reconciling):
    """Celery's pool, which loses no job."""

    on_process_down: Callable[[Any], None]

    def _create_process_handlers(self, hub: Any) -> None:
        super()._create_process_handlers(hub)
        self._hub = hub
        on_process_down = self.on_process_down

        def count_and_forget(child: Any) -> None:
            job, child.current, child.ahead = child.current, None, deque()
            # Celery frees a slot for each child that has ended. This job's slot is free already,
            # or still needed.
            self._putlock.early += job is not None and (job.is_slot_free or not job.ready())
            if not child.has_booted:
                self._putlock.early += 1  # a child that has not booted had no slot
                self._note_failed_boot(child)
            on_process_down(child)

        self.on_process_down = count_and_forget

    def _event_process_exit(self, hub: Any, proc: Any, looks: int = REAP_LOOKS) -> None:
        """Replace a child; its pipe closes shortly before it can be reaped."""
        try:
            super()._event_process_exit(hub, proc)
        except Exception as error:
            note_failure("Losses._event_process_exit", error)
        if proc in self._pool and looks:
            again = guarded(self._event_process_exit)
            hub.call_later(REAP_SECONDS, again, hub, proc, looks - 1)

    def on_job_process_down(self, job: Any, pid_gone: int) -> None:
        """Do nothing if the job's child has ended since the pool's last look: it looks again.

        Celery would close the child's pipes, with a result that was not read, and the next child
        would get pipes with the same numbers: it would seem to have the job.
        """
        child = job._write_to or job._scheduled_for
        if child not in self._pool:
            super().on_job_process_down(job, pid_gone)

    def on_job_process_lost(self, job: Any, pid: int, exitcode: int) -> None:
        """Give a job to another child if the one that has ended never read it."""
        child = job._write_to
        is_its_child = child is not None and child.pid == pid
        is_read = not is_its_child or has_reached(child, job) or not hasattr(job, "call")
        if is_read or self._state != RUN:
            super().on_job_process_lost(job, pid, exitcode)
            return
        self.on_timeout_cancel(job)
        job._accepted, job._worker_pid = False, None
        # The gate has counted this job as started. Tell it that it was never read.
        if hasattr(job, "on_unread"):
            job.on_unread()
        self._put_back(job)

    def process_flush_queues(self, proc: Any) -> None:
        """Read all results of a child, first the rest of a partial one."""
        self._result_handler.finish_partial_read(proc.outqR_fd, proc)
        super().process_flush_queues(proc)

    def terminate_job(self, pid: int, sig: int | None = None) -> None:
        """Kill a job's process; take back the jobs that wait in its pipe."""
        child, _ = self._process_by_pid(pid)
        if getattr(child, "ahead", None):
            self._recall_from(child)
            # Jobs that cannot be taken back have been read.
            if child.ahead and has_reached(child, child.current):
                return  # the job has ended; its result will be read
        super().terminate_job(pid, sig)

    def flush(self) -> None:
        """Drop the jobs that were not sent to a live child; keep the others, which will run.

        Celery drops all. Then the end of a running job would be missed, its message never settled,
        and its child would block a warm shutdown for 30 s.
        """
        jobs = list(self._cache.values())
        super().flush()
        for job in jobs:
            # The slots of the jobs that continue are counted again.
            job.is_slot_free = False
            # Without `give_back`, it is from a stock queue, whose broker delivers it again.
            give_back = getattr(job, "give_back", None)
            if job.ready():
                continue
            if was_sent(job):
                if job._accepted or give_back:
                    self._cache[job._job] = job
                    self._busy_workers.add(job._write_to.inqW_fd)
            elif not job._accepted:
                job.discard()
                if give_back:
                    give_back()

    def close(self) -> None:
        """Take no more jobs; give back those that were not sent to a child."""
        self.recall()
        for job in [job for job in self.outbound_buffer if hasattr(job, "give_back")]:
            self.outbound_buffer.remove(job)
            job.discard()
            job.give_back()
        super().close()


def was_sent(job: Any) -> bool:
    """Say whether a live child was sent this job."""
    child = getattr(job, "_write_to", None)
    return child is not None and child._is_alive()
