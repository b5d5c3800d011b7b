"""The boot step of a worker node: starts its parts, and stops them in order."""

from __future__ import annotations

import logging
import os
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, Final

from celery import bootsteps, signals
from celery.concurrency.prefork import TaskPool
from celery.exceptions import ImproperlyConfigured
from celery.worker import state

from fleet import log_events
from fleet.callbacks import guarded
from fleet.contract import Application, Node, Orders
from fleet.logs import bind_process
from fleet.overruling import overrule
from fleet.transport.epochs import set_primer
from fleet.worker import child, remote
from fleet.worker.away import Away
from fleet.worker.draining import Draining
from fleet.worker.gate import Gate
from fleet.worker.heartbeat import Heartbeat
from fleet.worker.io_thread import IOThread
from fleet.worker.leasing import DEFAULT_CONSUMER, slots_of
from fleet.worker.looking import Looking
from fleet.worker.redis_silence import LOOK_SECONDS, RedisSilence
from fleet.worker.unknown_tasks import UnknownTasks

logger = logging.getLogger(__name__)

STOP_SECONDS: Final = 10.0
"""How long a worker that stops waits for its database in all, besides its tasks."""
LEAVE_SECONDS: Final = 2.0
"""The part of it that is left for the end of its row."""
LOOKS_A_LEASE: Final = 6
TURN_SECONDS: Final = 0.05
CALLBACKS_A_TURN: Final = 32
"""Most callbacks in one turn of the loop; meanwhile, children get no work."""


class DurableRuns(bootsteps.StartStopStep):
    """Admission before the pool and recording after it, for one worker node."""

    requires = ("celery.worker.components:Pool", "fleet.worker.leasing:FairQueues")
    application: Application
    _patience = STOP_SECONDS - LEAVE_SECONDS

    def create(self, worker: Any) -> DurableRuns:
        # Before the pool forks and before tracers are built from `run`.
        _refuse_what_breaks(worker)
        _refuse_other_pools(worker, self.application)
        child.install(worker.app.tasks, self.application)
        if isinstance(worker.pool, TaskPool):
            # Other pools send this signal in the main process.
            signals.worker_process_init.connect(self._be_nice)
        self._close_remote_control(worker)
        overrule(
            worker.app.conf,
            # Wait for a Redis that is full or read-only as for a lost one.
            broker_channel_error_retry=True,
            # Leases count what still runs after a reconnect; the ends of runs restore no count.
            worker_enable_prefetch_count_reduction=False,
        )
        return self

    def _close_remote_control(self, worker: Any) -> None:
        """Disable remote control on the system's worker, and limit it on others."""
        # Before the fork: the children's lines say it as well.
        bind_process(worker=worker.hostname)
        # Before the fork: this raises for a name that is no command.
        self._commands = remote.commands(self.application.remote_commands)
        self._opened = self.application.remote_commands
        if self.application.system_queue in worker.app.amqp.queues.consume_from:
            overrule(worker.app.conf, worker_enable_remote_control=False)
            self._opened = ()

    def _be_nice(self, **_signal: Any) -> None:
        """In a pool's process: have a lower priority than the main one, which feeds all."""
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
        self.looking = Looking(self.application, self.gate.admitted)
        self.draining = Draining(worker, self.gate)
        self.silence = RedisSilence(worker.consumer, worker.renewal)
        self.heartbeat = Heartbeat(
            self.application,
            partial(current_node, worker, node, self.silence),
            held=self.gate.held,
            follow=partial(self._follow_all, post),
            # A solo pool runs its task in the loop: a long task is no hang.
            watch_loop=worker.hub is not None and node.pool != "solo",
        )
        self.gate.lease_ends = lambda: self.heartbeat.lease_ends
        self.away = Away(
            self.io_thread,
            lease_seconds=self.application.lease_seconds,
            lease_ends=self.gate.lease_ends,
        )
        # The row must exist before the first admission names it.
        self.heartbeat.beat_first()
        # This thread needs no connection until the end of the worker.
        self.application.close()
        self.gate.attach(worker)
        worker.consumer.gate, worker.consumer.away = self.gate, self.away
        remote.limit(worker.consumer, self._commands, self._opened)
        worker.consumer.unknown = UnknownTasks(
            self.io_thread, later=worker.timer.call_after, settle=worker.consumer.call_soon
        )
        worker.pool.close = partial(self._before_pool_closes, worker.pool.close)
        self.node = node
        # Each wake-up of an idle worker costs half a millisecond.
        pause = min(self.application.lease_seconds / LOOKS_A_LEASE, LOOK_SECONDS)
        worker.timer.call_repeatedly(pause, guarded(self._loop_turns))
        # After the pool has forked: a thread would not survive it, and a held lock would.
        self.io_thread.start()
        self.heartbeat.start()
        set_primer(self.io_thread.prime)
        signals.worker_ready.connect(guarded(self._ready), sender=worker.consumer, weak=False)
        signals.worker_shutting_down.connect(
            guarded(partial(_wake, worker), "_wake"), sender=worker.hostname, weak=False
        )
        signals.worker_shutdown.connect(guarded(self._leave), sender=worker, weak=False)

    def _loop_turns(self) -> None:
        self.heartbeat.loop_turns()
        self.io_thread.watch()
        self.away.look()
        self.silence.look()

    def _ready(self, **_signal: Any) -> None:
        self.heartbeat.loop_turns()

    def _follow_all(self, post: Callable[..., None], orders: Orders) -> None:
        post(partial(self._follow, orders))
        self.looking.follow(orders.look)

    def _follow(self, orders: Orders) -> None:
        self.away.look()  # the database has just answered
        for run_id in orders.cancel:
            self.gate.cancel(run_id)
        self.draining.follow(drains=orders.drains)

    def _before_pool_closes(self, close: Callable[[], None]) -> None:
        """Hand back what the pool would drop; let runs start whose start is recorded."""
        guarded(self._end_starts)()
        guarded(self.gate.pool_closes)()
        close()

    def _end_starts(self) -> None:
        self.heartbeat.loop_ends()
        self.gate.close()
        until = time.monotonic() + self._patience
        while self.gate.starting_count and not _is_cold() and time.monotonic() < until:
            self.io_thread.flush(timeout=TURN_SECONDS)
            self._answer()
        self._patience = max(0.0, until - time.monotonic())

    def _answer(self) -> None:
        """Run the callbacks that were left to the loop, which has ended."""
        while self._posted:
            _run_callback(self._posted.popleft())

    def stop(self, worker: Any) -> None:
        # The pool drains: outcomes are recorded until `worker_shutdown`.
        pass

    def terminate(self, worker: Any) -> None:
        self.gate.close()
        # The tasks must have ended before these runs are rescued.
        worker.pool.terminate()
        self._leave()

    def _leave(self, **_signal: Any) -> None:
        """Record what is left, then end this node's row, so that rescue need not wait."""
        self._answer()
        until = time.monotonic() + self._patience + LEAVE_SECONDS
        if not self.io_thread.flush(timeout=self._patience):
            log_events.OUTCOMES_NOT_RECORDED.log(logger)
        self.io_thread.stop()
        self.heartbeat.stop()
        # A thread, as a connection that hangs while it is opened has no limit of ours.
        leaving = threading.Thread(target=self._end_row, name="fairshift-leave", daemon=True)
        leaving.start()
        leaving.join(until - time.monotonic())
        if leaving.is_alive():
            log_events.WORKER_ROW_STAYS.log(logger)

    def _end_row(self) -> None:
        try:
            self.application.leave(self.node.id)
        except Exception:
            log_events.WORKER_ROW_STAYS.log(logger, exc_info=True)
        finally:
            self.application.close()


def current_node(worker: Any, node: Node, silence: RedisSilence) -> Node:
    """Return a worker's node with its present slots and queues, which remote control may change.

    Without a process it takes from no queue.
    """
    slots = slots_of(worker)
    queues = sorted(worker.app.amqp.queues.consume_from) if slots else []
    return replace(node, slots=slots, queues=queues, redis_silent_seconds=silence.seconds)


def _post(worker: Any, posted: deque[Callable[[], None]], *callbacks: Callable[[], None]) -> None:
    """Run callbacks in order in the worker's event loop; here, if it has none."""
    hub = worker.hub
    if hub is None or worker.blueprint.state != bootsteps.RUN:
        for callback in callbacks:
            _run_callback(callback)
    else:
        # Kombu's loop keeps no order, and admitted runs must start in the queue's order.
        posted.extend(callbacks)
        hub.call_soon(guarded(_in_loop), worker, posted)


def _in_loop(worker: Any, posted: deque[Callable[[], None]]) -> None:
    for _ in range(CALLBACKS_A_TURN):
        if posted:
            _run_callback(posted.popleft())
    if posted:
        worker.hub.call_soon(guarded(_in_loop), worker, posted)
    # A callback may leave an acknowledgement to the loop. Kombu does not check for it again
    # before it sleeps.
    if worker.hub._ready:
        _wake(worker)


def _wake(worker: Any, **_signal: Any) -> None:
    """End the event loop's sleep, which otherwise lasts until its next timer."""
    if worker.hub is not None and worker.hub._waker is not None:
        worker.hub._waker.wake()


def _is_cold() -> bool:
    """Say whether this is a cold shutdown."""
    # As Celery asks: 0 is an exit status.
    return state.should_terminate is not None and state.should_terminate is not False


def _run_callback(callback: Callable[[], None]) -> None:
    """Run a callback; log its error, which must not end the worker."""
    try:
        callback()
    except Exception:
        log_events.CALLBACK_FAILED.log(logger, exc_info=True)


def _pool_of(worker: Any) -> str:
    return type(worker.pool).__module__.rpartition(".")[2]


def _refuse_other_pools(worker: Any, application: Application) -> None:
    """Raise ImproperlyConfigured for a pool that takes durable runs and cannot stop them."""
    queues = set(worker.app.amqp.queues.consume_from) - set(application.plain_queues)
    if not queues or application.allows_other_pools or isinstance(worker.pool, TaskPool):
        return
    raise ImproperlyConfigured(
        f"this worker's pool is {_pool_of(worker)}, and it takes durable runs of "
        f"{', '.join(sorted(queues))}: only on prefork does a task end at its time limit, at the "
        "end of its service window, or when it is cancelled. Start it with --pool prefork; or set "
        "FAIRSHIFT_ALLOW_OTHER_POOLS=on to accept tasks without these ends (docs/operate/pools.md)"
    )


def _refuse_what_breaks(worker: Any) -> None:
    if worker.app.conf.get("worker_pool_start_method") == "spawn":  # new in Celery 5.7
        raise ImproperlyConfigured(
            "worker_pool_start_method is spawn: a spawned child would run tasks unguarded; use fork"
        )
    if worker.app.conf.worker_consumer != DEFAULT_CONSUMER:
        raise ImproperlyConfigured(
            f"worker_consumer is {worker.app.conf.worker_consumer}: durable runs need their own"
        )
