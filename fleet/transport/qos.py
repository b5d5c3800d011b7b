"""Prefetch and acknowledgements: by leases for fair queues, as in Kombu for stock queues."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from time import monotonic
from typing import Any, Final

from kombu.asynchronous import get_event_loop
from kombu.transport import redis
from redis.exceptions import ResponseError

from fleet.callbacks import guarded
from fleet.transport.held_leases import BUFFER_US
from fleet.transport.lease_taking import Room
from fleet.transport.leases import Leases
from fleet.transport.pending import FLUSH_SECONDS
from fleet.transport.quarantine import SHAPE_ERRORS
from fleet.transport.stock import drop_unacknowledged, free_mutex, put_aside_wrong

UNLIMITED: Final = 1_000


class QoS(redis.QoS):
    """The unacknowledged messages of a channel, and its room for more.

    The window of fair queues is the prefetch count (a worker's slots), plus 100 ms of expected run
    time for each slot, plus four round trips. It is refilled when a quarter of the run time is
    free: messages may need an admission before they run, which takes time.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.leases: Leases = self.channel.leases
        self._turns_at = 0.0
        self._unsettled: deque[Callable[[], Any]] = deque()
        """Acknowledgements of stock queues that could not be sent when they were due."""
        self.head_waits = False
        """The next message is slow or its run time unknown: take it when a slot is free."""

    # --- room --------------------------------------------------------------------------

    def room(self) -> Room:
        """Return what may be taken now."""
        leases = self.leases
        if leases.may_take is not None and not leases.may_take():
            return Room(0, 0)
        load = leases.load(self.channel.holder)
        slots = self.prefetch_count or UNLIMITED
        stock = len(self._delivered) - len(self._dirty)
        # Celery's `worker_disable_prefetch` puts a `can_consume` of its own here.
        budget = 0 if "can_consume" in vars(self) else self._buffer_us() - load.buffered
        return Room(max(0, slots - load.count - stock), max(0, budget))

    def can_take(self) -> bool:
        """Whether a take is worth its round trip."""
        room = self.room()
        if room.slots:
            self.head_waits = False
            return True
        return not self.head_waits and 4 * room.budget >= self._buffer_us()

    def _buffer_us(self) -> int:
        """Return the run time (us) to buffer while a take and an admission are on their way."""
        slots = self.prefetch_count or UNLIMITED
        # PostgreSQL, which admits, is taken to be as far as Redis.
        return slots * (BUFFER_US + 4 * self.leases.round_trip_us)

    def can_consume(self) -> bool:
        if self.channel.has_pending_take:
            return True  # there was room when it was sent
        if not self.channel.active_fair_queues:
            return bool(super().can_consume())
        return self.can_take()

    # --- messages ----------------------------------------------------------------------

    def append(self, message: Any, delivery_tag: str) -> None:
        # A message of a fair queue is counted by its lease.
        if not _is_fair(delivery_tag):
            self._with_repair(super().append, message, delivery_tag)

    def ack(self, delivery_tag: str) -> None:
        if _is_fair(delivery_tag):
            self.leases.ack(delivery_tag)
            self._confirm()
        else:
            self._settle_stock(super().ack, delivery_tag)

    def reject(self, delivery_tag: str, requeue: bool = False) -> None:
        if not _is_fair(delivery_tag):
            self._settle_stock(super().reject, delivery_tag, requeue)
        elif requeue:
            lease = self.leases.get(delivery_tag)
            if lease is None or not (lease.is_lost and self.channel.quarantine.strike(lease)):
                # A hint keeps its place: its row knows how long it has waited.
                is_rejected = lease is None or not lease.is_hint
                self.leases.give_back(delivery_tag, is_rejected=is_rejected)
            self._confirm()
        else:
            self.ack(delivery_tag)

    def requeue_later(self, delivery_tag: str, *, seconds: float) -> None:
        """Give a message of a fair queue back; it is not delivered for this many seconds."""
        self.leases.give_back(delivery_tag, delay_seconds=seconds)
        self._confirm()

    def finished(self, delivery_tag: str, seconds: float) -> None:
        """Note that the run of this message has ended, after this many seconds."""
        self.leases.finish(delivery_tag, seconds)
        self._schedule_flush()

    def restore_unacked(self, client: Any = None) -> None:
        """Give back what has not started; this process keeps the leases of what runs."""
        self.leases.give_back_unstarted(self.channel.holder)
        if self._delivered:
            super().restore_unacked(client)

    def restore_visible(self, *args: Any, **kwargs: Any) -> None:
        """Restore unacknowledged messages of stock queues whose workers were lost."""
        with self.channel.conn_or_acquire() as client:
            free_mutex(client, self.unacked_mutex_key)
        self._with_repair(partial(super().restore_visible, *args, **kwargs))

    def _settle_stock(self, act: Callable[..., Any], delivery_tag: str, *arguments: Any) -> None:
        """Settle a message of a stock queue; in an event loop later, if Redis is away.

        The slot is freed at once: the channel stays open and reconnects.
        """
        try:
            self._with_repair(act, delivery_tag, *arguments)
        except self.channel.connection_errors:
            if not self.channel.connection.cycle.is_in_loop:
                raise
            self._unsettled.append(partial(act, delivery_tag, *arguments))
            self._quick_ack(delivery_tag)

    def settle_again(self) -> None:
        """Send the acknowledgements of stock queues that could not be sent when they were due."""
        while self._unsettled:
            self._with_repair(self._unsettled[0])
            self._unsettled.popleft()

    def _with_repair(self, act: Callable[..., Any], *arguments: Any) -> Any:
        """Call `act`; repair and repeat once if one of Kombu's keys has the wrong type."""
        try:
            return act(*arguments)
        except ResponseError:
            types = {self.unacked_key: "hash", self.unacked_index_key: "zset"}
            with self.channel.conn_or_acquire() as client:
                if not put_aside_wrong(client, types):
                    raise
            return act(*arguments)

    def restore_by_tag(self, tag: Any, client: Any = None, leftmost: bool = False) -> None:
        try:
            super().restore_by_tag(tag, client, leftmost)
        except SHAPE_ERRORS as error:
            keys = self.unacked_key, self.unacked_index_key
            with self.channel.conn_or_acquire(client) as acquired:
                drop_unacknowledged(acquired, keys, tag, error)

    def _confirm(self) -> None:
        """Flush what was acknowledged: in a worker's loop soon, elsewhere at once."""
        if self.leases.has_worker:
            self._schedule_flush()
        else:
            self.channel.settle()

    def _schedule_flush(self) -> None:
        """Have the loop turn in time for a flush. Without a loop, the next poll flushes."""
        hub, now = get_event_loop(), monotonic()
        # A time, not a flag: a lost connection cancels its timers.
        if hub is not None and now >= self._turns_at:
            self._turns_at = now + FLUSH_SECONDS
            hub.call_later(FLUSH_SECONDS, guarded(self._turn))

    def _turn(self) -> None:
        """Schedule another turn if anything is pending: this one may have been too early."""
        self._turns_at = 0.0
        if self.leases.has_pending:
            self._schedule_flush()


def _is_fair(delivery_tag: str) -> bool:
    """Say whether this is a lease's tag, also of one that has ended; a stock tag is a bare UUID."""
    return "#" in delivery_tag
