"""The pool behind `fleet.pool.prefork`: jobs, and the processes that pull them.

A waiting job belongs to no process: a free process takes the next one. The job that a process runs
is in its row. This class has the names that Celery's `TaskPool` calls and reads.
"""

from __future__ import annotations

import math
import pickle
import select
import signal
import time
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from billiard.common import TERM_SIGNAL
from billiard.pool import CLOSE, RUN, TERMINATE

from fleet.callbacks import guarded
from fleet.pool.answers import Answers
from fleet.pool.child import Child
from fleet.pool.children import Children
from fleet.pool.job import Job
from fleet.pool.job_socket import JobSocket
from fleet.pool.jobs import Jobs
from fleet.pool.limits import Limits
from fleet.pool.loop import Loop
from fleet.pool.losses import Losses
from fleet.pool.outbox import Outbox
from fleet.pool.results import Results
from fleet.pool.row import Row
from fleet.pool.slots import Slots
from fleet.pool.stacks import stack_file
from fleet.pool.starts import Starts

LOOK_SECONDS: Final = 1.0
IDLE_LOOKS: Final = 5
"""An idle pool makes every fifth look only."""
WAIT_SECONDS: Final = 0.5
END_SECONDS: Final = 60.0
"""How long an idle process has to end when its pool does."""


class Processes:
    """Processes of one worker, in its event loop."""

    def __init__(
        self,
        processes: int,
        *,
        initializer: Callable[..., Any],
        on_process_exit: Callable[[int, int], Any],
        initargs: tuple[Any, ...] = (),
        maxtasksperchild: int | None = None,
        max_memory_per_child: int | None = None,
        timeout: float | None = None,
        soft_timeout: float | None = None,
        semaphore: Any = None,
        proc_alive_timeout: float | None = None,
        **_others: Any,
    ) -> None:
        self.timeout, self.soft_timeout = timeout, soft_timeout
        self.most_jobs = maxtasksperchild
        self._state = RUN
        self._hub: Any = None
        self._look_entry: Any = None
        self._looks = 0
        self.socket, self._results = JobSocket(), Results()
        self._slots = Slots(semaphore, children=processes, most_jobs=maxtasksperchild)
        self.jobs = Jobs(self._slots)
        self._outbox = Outbox(self.jobs, self.socket, later=self._later)
        self._limits = Limits(self.jobs, later=self._later)
        make_loop = partial(
            Loop,
            jobs=self.socket,
            results=self._results,
            initializer=initializer,
            initargs=initargs,
            on_exit=on_process_exit,
            most_jobs=maxtasksperchild,
            most_kilobytes=max_memory_per_child,
        )
        self._children = Children(
            self.jobs,
            lambda: make_loop(row=Row(), stack_file=stack_file()),
            look=self.maintain_pool,
            boot_seconds=proc_alive_timeout or 0.0,
        )
        self._answers = Answers(self._results, self.jobs, self._outbox, self._children)
        self._losses = Losses(self.jobs, self._outbox, self._children, self._answers)
        self._starts = Starts(
            *(self.jobs, self._outbox, self._children),
            limits=self._limits,
            slots=self._slots,
            later=self._later,
        )
        self._children.create(processes)

    @property
    def children(self) -> list[Child]:
        """The processes, also those that boot."""
        return self._children.all

    @property
    def count(self) -> int:
        """How many processes there are to be."""
        return self._slots.children

    # --- Celery's loop -----------------------------------------------------------------

    def register_with_event_loop(self, hub: Any) -> None:
        """Work in this loop; again after each lost connection, which clears it."""
        self._hub = hub
        hub.add_reader(self._results.reader, guarded(self._on_results))
        self._children.watch(hub)
        if self._look_entry is not None:
            self._look_entry.cancel()
        self._look_entry = hub.call_repeatedly(LOOK_SECONDS, guarded(self.look))

    def _later(self, seconds: float, callback: Callable[..., Any], *args: Any) -> Any:
        if self._hub is not None:
            return self._hub.call_later(seconds, guarded(callback), *args)
        return None

    def did_start_ok(self) -> bool:
        """Replace processes that have ended by now, and return true: the worker continues."""
        self.maintain_pool()
        return True

    def look(self) -> None:
        """Check, each second, what no event tells."""
        self._looks += 1
        if self._state != RUN or (not self.jobs and self._looks % IDLE_LOOKS):
            return
        self.maintain_pool()
        self._children.kill_hung_boots()
        self._starts.look()
        self._losses.send_missing()
        self._losses.end_deaf()
        self._retire()

    def maintain_pool(self, *_args: Any, **_kwargs: Any) -> None:
        """Notice processes that have ended; replace them while the pool runs."""
        ended = self._children.reap()
        if ended:
            # Their last results are read before their ends are noted.
            self._answers.take_last_of([child.pid for child in ended])
        for child in ended:
            self._losses.note_end(child, is_closing=self._state != RUN)
        if self._state == RUN:
            self._children.create(self.count)

    # --- jobs --------------------------------------------------------------------------

    def apply_async(
        self,
        func: Any,
        args: Any = (),
        kwds: Any = None,
        *,
        callback: Callable[..., Any] | None = None,
        error_callback: Callable[..., Any] | None = None,
        accept_callback: Callable[..., Any] | None = None,
        timeout_callback: Callable[..., Any] | None = None,
        soft_timeout: float | None = None,
        timeout: float | None = None,
        correlation_id: str | None = None,
        expected: float = math.inf,
        **_others: Any,
    ) -> Job | None:
        """Have a process run a function that is expected to take this many seconds."""
        if self._state != RUN:
            return None
        job = Job(
            packet=pickle.dumps((func, args, kwds or {}), pickle.HIGHEST_PROTOCOL),
            expected=expected,
            correlation_id=correlation_id,
            soft_limit=soft_timeout or self.soft_timeout,
            hard_limit=timeout or self.timeout,
            on_accept=accept_callback,
            on_value=callback,
            on_error=error_callback,
            on_limit=timeout_callback,
        )
        self.jobs.add(job)
        self._outbox.add(job)
        self._starts.look_soon()
        return job

    def lend_slot(self, job: Any) -> None:
        """Release the slot of a job that was just handed in, if another one can use it."""
        if isinstance(job, Job) and not job.ready():
            self._slots.lend(job)

    def has(self, job: Any) -> bool:
        """Say whether a job of this pool has not ended and was not dropped."""
        return isinstance(job, Job) and job.number in self.jobs

    def recall(self) -> None:
        """Read back the jobs that no process has read; they are sent again in the next turn."""
        self._starts.let_idle_read()
        self._outbox.recall()

    def withdraw(self, job: Any) -> bool:
        """Take a job back; False if a process has read it."""
        return self.has(job) and job.child is None and self._outbox.withdraw(job)

    def flush(self) -> None:
        """Drop what no process has read, when the broker's connection is lost."""
        self._starts.let_idle_read()
        self._outbox.drop()
        self.maintain_pool()
        self.retake_slots()

    def retake_slots(self, *, also: int = 0) -> None:
        """Take a slot again for each job, and `also` others, when Celery has released all."""
        self._slots.retake(also)

    def _on_results(self) -> None:
        self._answers.take()
        self._outbox.send()
        self._starts.look_soon()

    # --- what operators do -------------------------------------------------------------

    def terminate_job(self, pid: int, sig: int | None = None) -> None:
        """Kill a job's process, unless the job has ended."""
        child = self._children.find(pid)
        if child is not None and child.job is not None:
            self._limits.terminate(child.job, sig or TERM_SIGNAL)

    def grow(self, n: int = 1) -> None:
        """Have this many processes more."""
        for _ in range(n):
            self._slots.grow()
        self.maintain_pool()

    def shrink(self, n: int = 1) -> None:
        """Have this many idle processes less; raises ValueError if there are fewer."""
        self._starts.look()
        for _ in range(n):
            if self.count <= sum(child.job is not None for child in self._children.all):
                raise ValueError("Can't shrink pool. All processes busy!")
            self._slots.shrink()
            self._retire()

    def _retire(self) -> None:
        """Have as many processes end as there are too many, those that are idle first."""
        retiring = sum(job is None for job in self._outbox.unread().values())
        for _ in range(len(self._children.all) - retiring - self.count):
            self.socket.retire_one()

    def restart(self) -> None:
        """Have each process replaced after its present job."""
        for child in self._children.all:
            child.row.ask_to_retire()
            if child.row.number not in self.jobs:
                self.socket.retire_one()

    def statistics(self) -> dict[str, Any]:
        """Return what `inspect stats` shows of the jobs of each process."""
        return self._children.statistics()

    # --- the end -----------------------------------------------------------------------

    def close(self) -> None:
        """Take no more jobs; give back those that no process has read."""
        if self._state == RUN:
            self._starts.let_idle_read()
            self._state = CLOSE
            self._limits.stop_timers()
            self._outbox.drop(close=True)
            self._slots.clear()

    def join(self) -> None:
        """Return when all jobs, and then all processes, have ended."""
        while self.jobs and self._children.all:
            self._wait()
            self._starts.look()
            self._limits.enforce()
        self._losses.end_rest()
        self.socket.close_writer()
        until = time.monotonic() + END_SECONDS
        while self._children.all and time.monotonic() < until:
            self._wait()
        self._kill_all(signal.SIGKILL)
        self._let_go()

    def terminate(self) -> None:
        """End all processes at once."""
        self._state = TERMINATE
        self._outbox.drop(close=True)
        self._kill_all(TERM_SIGNAL)
        self._losses.end_rest()
        self._let_go()

    def _kill_all(self, number: int) -> None:
        for child in self._children.all:
            child.ends_as_told = True
            child.kill(number)
        while self._children.all:
            self._wait()

    def _let_go(self) -> None:
        if self._hub is not None:
            self._hub.remove_reader(self._results.reader)
            self._look_entry.cancel()
        self.socket.close()
        self._results.close()

    def _wait(self) -> None:
        """Handle results and ends for a moment, without the event loop."""
        poll = select.poll()
        for descriptor in (self._results.reader, *(each.sentinel for each in self._children.all)):
            poll.register(descriptor, select.POLLIN)
        poll.poll(1000 * WAIT_SECONDS)
        self._answers.take()
        self.maintain_pool()
        for child in self._children.all:
            child.kill_if_due()
