"""The leases of this process on one broker, and what becomes of them.

They outlive channels: a lost connection does not end what runs. Operations that could not be sent
are sent with the next take.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Hashable, Iterable

from redis import Redis

from fleet import log_events
from fleet.transport import scripts
from fleet.transport.held_leases import Lease, Load
from fleet.transport.lease_taking import LeaseTaking

logger = logging.getLogger(__name__)


class Leases(LeaseTaking):
    """The leases of one process on one broker. Safe for threads."""

    def __contains__(self, tag: object) -> bool:
        return tag in self._held

    def load(self, channel: Hashable) -> Load:
        """Return a channel's load; runs of lost channels take its slots as well."""
        return self._held.load(channel)

    # --- what becomes of a message -----------------------------------------------------

    def get(self, tag: str) -> Lease | None:
        """Return the lease of a message that this process holds."""
        return self._held.get(tag)

    def start(self, tag: str) -> Lease | None:
        """Note that the pool has it: a lost connection or a warm shutdown keeps the lease."""
        lease = self._held.get(tag)
        if lease is not None:
            lease.is_started = True
        return lease

    def lose(self, tag: str) -> None:
        """Note that the process which ran it has died."""
        lease = self._held.get(tag)
        if lease is not None:
            lease.is_lost = True

    def finish(self, tag: str, seconds: float) -> None:
        """Note that the run has ended: free its slot, cap and lock, and charge its owner."""
        with self._lock:
            lease = self._held.get(tag)
            if lease is not None and not lease.is_finished:
                self._held.finish(lease)
                run = max(0, round(seconds * 1_000_000))
                self._pending_ops.add(lease, "finish", run, is_urgent=lease.is_urgent)
                if lease.is_acked:
                    self.ack(tag)

    def ack(self, tag: str) -> None:
        """Remove the message, once its run has ended.

        Celery acknowledges a task that it terminates before the process has ended. Until then the
        owner is charged, and the cap and the lock stay taken.
        """
        with self._lock:
            running = self._held.get(tag)
            if running is not None and running.is_started and not running.is_finished:
                running.is_acked = True
                return
            was_running = running is not None and not running.is_finished
            lease = self.remove(tag)
            if lease is not None:
                is_urgent = lease.is_urgent and was_running
                is_last = self._held.is_idle(lease.channel)
                self._pending_ops.add(lease, "ack", is_urgent=is_urgent or is_last)

    def remove(self, tag: str) -> Lease | None:
        """Remove a lease and return it; the caller tells the queue."""
        with self._lock:
            lease = self._held.pop(tag)
            if lease is not None:
                self._held.finish(lease)
            return lease

    def give_back(self, tag: str, *, delay_seconds: float = 0.0, is_rejected: bool = False) -> None:
        """Have the message delivered again after a delay; a rejected one goes behind others."""
        with self._lock:
            lease = self.remove(tag)
            if lease is not None:
                delay = round(delay_seconds * 1_000_000)
                self._pending_ops.add(lease, "give_back", delay, int(is_rejected), is_urgent=True)

    def give_back_unstarted(self, channel: Hashable) -> None:
        """Give back the messages of a channel that have not started; orphan the others."""
        with self._lock:
            for pending in list(self._pending.values()):
                if pending.channel == channel:
                    self.drop_take(pending)
            for lease in self._held.lose(channel):
                self.give_back(lease.tag)
            self._held.forget(channel)
            self.forget_server(channel)

    # --- sending -----------------------------------------------------------------------

    def due(self) -> list[str]:
        """Return the queues that should be flushed now."""
        return self._pending_ops.due()

    @property
    def has_pending(self) -> bool:
        """Whether any operation is not sent, or not confirmed."""
        return bool(self._pending_ops)

    @property
    def is_collect_due(self) -> bool:
        """Whether replies should have arrived by now."""
        return self._pending_ops.is_collect_due

    def flush(self, client: Redis, queues: Iterable[str] | None = None) -> None:
        """Send the pending operations of these queues, or of all."""
        with self._lock:
            self._pending_ops.flush(client, queues)

    def flush_async(self, client: Redis, queues: Iterable[str]) -> None:
        """Send the pending operations of these queues, and do not wait for the reply."""
        with self._lock:
            self._pending_ops.flush_async(client, queues)

    # --- living ------------------------------------------------------------------------

    def renew(self, client: Redis) -> None:
        """Send a heartbeat to each queue, and audit it; name the leases to one that was emptied."""
        with self._renewing:
            for queue, known in list(self._epochs.known.items()):
                numbers = (known.epoch, known.last_lease)
                before = self._confirmed_tags(queue)
                renewal = ("renew", (self.worker, *numbers))
                [(count, *epoch), _] = scripts.run_all(client, queue, [renewal, ("audit", ())])
                with self._lock:
                    self._epochs.meet(client, queue, *epoch)
                    if before is not None and before == self._confirmed_tags(queue):
                        self._compare(client, queue, len(before), int(count))

    def _confirmed_tags(self, queue: str) -> set[str] | None:
        """Return the leases of a queue; None while operations or a take are unconfirmed."""
        with self._lock:
            if queue in self._pending or queue in self._pending_ops:
                return None
            return {lease.tag for lease in self._held.leases(queue=queue)}

    def _compare(self, client: Redis, queue: str, count: int, known: int) -> None:
        """Name the leases to a queue whose number of them was wrong twice in a row."""
        if count == known or queue not in self._differs:
            (self._differs.discard if count == known else self._differs.add)(queue)
            return
        self._differs.discard(queue)
        log_events.LEASES_DIFFER.log(logger, queue=queue, known=known, count=count)
        self._epochs.declare(client, queue)

    def give_back_waiting(self, client: Redis) -> None:
        """Give back what has not started; keep the rest until it has ended."""
        with self._lock:
            for lease in self._held.leases():
                if not lease.is_started:
                    self.give_back(lease.tag)
            self._pending_ops.flush(client)

    def leave(self, client: Redis) -> None:
        """Send pending operations, and give back all that is held."""
        with self._renewing, self._lock:
            for lease in self._held.leases():
                if lease.is_acked:
                    self.finish(lease.tag, 0)  # terminated: no callback reports its end
            for pending in list(self._pending.values()):
                self.drop_take(pending)
            self._pending_ops.flush(client)
            for queue in list(self._epochs.known):
                while scripts.run(client, queue, "leave", self.worker, 500) == 500:
                    pass
            self._held.clear()
            self._epochs.known.clear()
            self._met.clear()


_of_broker: dict[Hashable, Leases] = {}
os.register_at_fork(after_in_child=_of_broker.clear)


def leases_on(broker: Hashable) -> Leases:
    """Return this process's leases on a broker; a forked child does not inherit them."""
    return _of_broker.setdefault(broker, Leases())
