"""The boot step of a worker node: starts its parts, and ends them in order."""

from __future__ import annotations

import logging
import os
import time
import uuid
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

from celery import bootsteps, signals
from celery.concurrency.prefork import TaskPool
from celery.exceptions import ImproperlyConfigured
from celery.worker import state

from fleet.contract import Application, Node
from fleet.transport.epochs import when_untold
from fleet.worker import child, remote
from fleet.worker.gate import Gate
from fleet.worker.heartbeat import Heartbeat
from fleet.worker.io_thread import IOThread
from fleet.worker.leasing import DEFAULT_CONSUMER, slots_of
from fleet.worker.unknown_tasks import UnknownTasks

logger = logging.getLogger(__name__)

FLUSH_SECONDS: Final = 10.0
LOOK_SECONDS: Final = 1.0
TURN_SECONDS: Final = 0.05
DEALT_A_TURN: Final = 32
"""Not all at once: while the loop is busy with a batch, children would have no work."""


class DurableRuns(bootsteps.StartStopStep):
    """Admission before the pool and recording after it, for one worker node."""

    requires = ("celery.worker.components:Pool", "fleet.worker.leasing:FairQueues")
    application: Application

    def create(self, worker: Any) -> DurableRuns:
        # Before the pool forks and before tracers are built from `run`.
        _refuse_what_breaks(worker)
        _refuse_other_pools(worker, self.application)
        child.install(worker.app.tasks, self.application)
        if isinstance(worker.pool, TaskPool):
            # Others say so of the main process.
            signals.worker_process_init.connect(self._be_nice)
        self._close_remote_control(worker)
        # A Redis that is full or read-only refuses commands: it is waited for like a lost one.
        worker.app.conf.broker_channel_error_retry = True
        return self

    def _close_remote_control(self, worker: Any) -> None:
        """Have the system's worker follow no command by message, and others few."""
        # Refused before the fork: a name that is no command.
        self._commands = remote.commands(self.application.remote_commands)
        self._opened = self.application.remote_commands
        if self.application.system_queue in worker.app.amqp.queues.consume_from:
            worker.app.conf.worker_enable_remote_control = False
            self._opened = ()

    def _be_nice(self, **_signal: Any) -> None:
        """In a pool's process: where processors are scarce, come after the one that feeds all."""
        os.nice(self.application.child_niceness)

    def start(self, worker: Any) -> None:
        node = Node(
            id=uuid.uuid4(),
            hostname=worker.hostname,
            pid=os.getpid(),
            pool=_pool_of(worker),
            slots=worker.max_concurrency or worker.concurrency,
            queues=(),
            tasks=sorted(name for name in worker.app.tasks if not name.startswith("celery.")),
        )
        self._posted: deque[Callable[[], None]] = deque()
        post = partial(_post, worker, self._posted)
        self.io_thread = IOThread(self.application, node.id, post)
        self.gate = Gate(self.application, self.io_thread, slots=node.slots)
        self.heartbeat = Heartbeat(
            self.application,
            partial(as_now, worker, node),
            held=self.gate.held,
            cancel=lambda run_ids: post(partial(self._cancel, run_ids)),
            # A solo pool runs its task in the loop: a long task is no hang.
            watch_loop=worker.hub is not None and node.pool != "solo",
        )
        # The row must be there before the first admission names it.
        self.heartbeat.beat_first()
        # This thread is next heard of at the end; a connection may not live as long as a worker.
        self.application.close()
        self.gate.attach(worker)
        worker.consumer.gate = self.gate
        remote.limit(worker.consumer, self._commands, self._opened)
        worker.consumer.unknown = UnknownTasks(
            self.io_thread, later=worker.timer.call_after, settle=worker.consumer.call_soon_ack
        )
        worker.pool.close = partial(self._before_pool_closes, worker.pool.close)
        self.node = node
        worker.timer.call_repeatedly(LOOK_SECONDS, self.heartbeat.loop_turns)
        worker.timer.call_repeatedly(LOOK_SECONDS, self.gate.hand_back_late)
        # After the pool has forked: a thread would not survive it, and a held lock would.
        self.io_thread.start()
        self.heartbeat.start()
        when_untold(self.io_thread.prime)
        signals.worker_ready.connect(self._ready, sender=worker.consumer, weak=False)
        signals.worker_shutting_down.connect(
            partial(_wake, worker), sender=worker.hostname, weak=False
        )
        signals.worker_shutdown.connect(self._leave, sender=worker, weak=False)

    def _ready(self, **_signal: Any) -> None:
        self.heartbeat.loop_turns()

    def _cancel(self, run_ids: Sequence[str]) -> None:
        for run_id in run_ids:
            self.gate.cancel(run_id)

    def _before_pool_closes(self, close: Callable[[], None]) -> None:
        """Hand back what the pool would not take any more, and let begin what is recorded to."""
        self.heartbeat.loop_ends()
        self.gate.close()
        until = time.monotonic() + FLUSH_SECONDS
        while self.gate.starting_count and not _is_cold() and time.monotonic() < until:
            self.io_thread.flush(timeout=TURN_SECONDS)
            self._answer()
        self.gate.pool_closes()
        close()

    def _answer(self) -> None:
        """Do what was left to the loop, which turns no more."""
        while self._posted:
            _survive(self._posted.popleft())

    def stop(self, worker: Any) -> None:
        # The pool drains: its outcomes are recorded as they come, until `worker_shutdown`.
        pass

    def terminate(self, worker: Any) -> None:
        self.gate.close()
        # Whoever rescues these runs must not find their tasks still at work.
        worker.pool.terminate()
        self._leave()

    def _leave(self, **_signal: Any) -> None:
        """Record what is left, then end this node's row: rescue need not wait for a lease."""
        self._answer()
        if not self.io_thread.flush(timeout=FLUSH_SECONDS):
            logger.error("outcomes are not recorded; their runs will be rescued")
        self.io_thread.stop()
        self.heartbeat.stop()
        try:
            self.application.leave(self.node.id)
        except Exception:
            logger.exception("the worker's row stays; its runs wait for the end of the lease")


def as_now(worker: Any, node: Node) -> Node:
    """Return a worker's node with the slots that it has now, and the queues that it takes from.

    By remote control both may change, down to none. Without a process it takes from no queue.
    """
    slots = slots_of(worker)
    queues = sorted(worker.app.amqp.queues.consume_from) if slots else []
    return replace(node, slots=slots, queues=queues)


def _post(worker: Any, posted: deque[Callable[[], None]], *callbacks: Callable[[], None]) -> None:
    """Run callbacks in the worker's event loop, in turn; here, where there is none."""
    hub = worker.hub
    if hub is None or worker.blueprint.state != bootsteps.RUN:
        for callback in callbacks:
            _survive(callback)
    else:
        # Kombu's loop calls in any order what was left to it, and admitted runs start in that
        # in which the queue gave them.
        posted.extend(callbacks)
        hub.call_soon(_in_loop, worker, posted)


def _in_loop(worker: Any, posted: deque[Callable[[], None]]) -> None:
    for _ in range(DEALT_A_TURN):
        if posted:
            _survive(posted.popleft())
    if posted:
        worker.hub.call_soon(_in_loop, worker, posted)
    # What the callback leaves to the loop, an acknowledgement say, comes too late for this
    # round, and Kombu does not look for it before it sleeps until something else happens.
    if worker.hub._ready:
        _wake(worker)


def _wake(worker: Any, **_signal: Any) -> None:
    """End the event loop's sleep: told to stop, it would look only when its next timer is due."""
    if worker.hub is not None and worker.hub._waker is not None:
        worker.hub._waker.wake()


def _is_cold() -> bool:
    """Say whether this worker ends at once, with what runs."""
    # As Celery asks: 0 is an exit status.
    return state.should_terminate is not None and state.should_terminate is not False


def _survive(callback: Callable[[], None]) -> None:
    """Run a callback; its error concerns one run, and must not end the worker."""
    try:
        callback()
    except Exception:
        logger.exception("a run's answer was not dealt with")


def _pool_of(worker: Any) -> str:
    return type(worker.pool).__module__.rpartition(".")[2]


def _refuse_other_pools(worker: Any, application: Application) -> None:
    """Raise ImproperlyConfigured for one that takes durable runs and cannot stop them."""
    queues = set(worker.app.amqp.queues.consume_from) - set(application.plain_queues)
    if not queues or application.allows_other_pools or isinstance(worker.pool, TaskPool):
        return
    raise ImproperlyConfigured(
        f"this worker's pool is {_pool_of(worker)}, and it takes durable runs of "
        f"{', '.join(sorted(queues))}: only on prefork does a task end at its time limit, at the "
        "end of its service window, or when it is cancelled. Start it with --pool prefork; or set "
        "FAIRSHIFT_ALLOW_OTHER_POOLS=on, and do without (docs/operate/pools.md)"
    )


def _refuse_what_breaks(worker: Any) -> None:
    if worker.app.conf.worker_pool_start_method == "spawn":
        raise ImproperlyConfigured(
            "worker_pool_start_method is spawn: a spawned child would run tasks unguarded; use fork"
        )
    if worker.app.conf.worker_consumer != DEFAULT_CONSUMER:
        raise ImproperlyConfigured(
            f"worker_consumer is {worker.app.conf.worker_consumer}: durable runs need their own"
        )
