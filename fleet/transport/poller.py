"""What a worker's loop does for its channels in each turn.

A lost connection is reopened here, while the loop keeps turning. Celery would restart its whole
consumer, which takes some 60 replies of Redis in a row.
"""

from __future__ import annotations

import logging
from math import inf
from time import monotonic
from typing import Any, Final

from kombu.asynchronous import get_event_loop
from kombu.transport import redis

from fleet import log_events
from fleet.callbacks import guarded
from fleet.transport.password import logs_refused_password

logger = logging.getLogger(__name__)

REST_SECONDS: Final = 0.5
PATIENCE_SECONDS: Final = 60.0
"""Celery's consumer restarts if Redis has not answered for this long."""


class Poller(redis.MultiChannelPoller):
    """Kombu's poller, which also flushes pending operations and survives lost connections."""

    has_delivered = False
    is_in_loop = False
    """Whether an event loop reads the replies."""
    _lost_since: float | None = None
    _is_lost = False
    _answered_at = -inf
    _rests_until = 0.0

    def survives(self, error: Exception) -> bool:
        """Say whether this poller reopens a lost connection; if not, the caller raises the error.

        Not without an event loop; not if Celery knows another broker; and not for longer than
        `PATIENCE_SECONDS`.
        """
        now = monotonic()
        self._lost_since = now if self._lost_since is None else self._lost_since
        self._is_lost = True
        brokers = next((channel.connection.client.alt for channel in self._channels), ())
        is_over = now > self._lost_since + PATIENCE_SECONDS
        if not self.is_in_loop or is_over or len(brokers) > 1:
            return False
        if not logs_refused_password(logger, error):
            log_events.REDIS_LOST.log(logger, error=error)
        self._rests_until = now + REST_SECONDS
        for channel in self._channels:
            channel.leases.forget_server(channel.holder)
        hub = get_event_loop()
        if hub is not None:
            hub.call_later(REST_SECONDS, guarded(_turn_again))
        return True

    def answered(self) -> None:
        """Note that Redis has answered."""
        self._lost_since = None
        self._answered_at = monotonic()

    def is_owed(self, *, since: float) -> bool | None:
        """Say whether an answer of Redis is due, and none has come since this time.

        None while nothing is asked: one cannot know. None is due to a worker without room.
        """
        if self._answered_at >= since:
            return False
        consuming = [channel for channel in list(self._channels) if channel.active_queues]
        ready = [channel for channel in consuming if channel.qos.can_consume()]
        if self._is_lost or any(channel._in_poll for channel in ready):
            return True
        return False if consuming and not ready else None

    def on_readable(self, fileno: int) -> Any:
        """Read a reply, if there is one on the connection of this descriptor.

        An earlier event of the same batch may have read the reply, or may have reopened
        connections, so that the descriptor is another connection's. A read would block the loop.
        """
        if not self._has_reply(fileno):
            return None
        kind = self._fd_to_chan[fileno][1]
        found = super().on_readable(fileno)
        if kind == "BRPOP":
            # Take after a wake-up, and deliver what was taken, without another turn of the loop.
            self.on_poll_start()
        return found

    def _has_reply(self, fileno: int) -> bool:
        known = self._fd_to_chan.get(fileno)
        for (channel, client, kind), sock in self._chan_to_sock.items():
            if (channel, kind) == known and sock.fileno() == fileno:
                connection = client.connection
                try:
                    return connection._sock is sock and connection.can_read(timeout=0)
                except self._connection_errors():
                    return True  # the read raises the error, and its caller handles the loss
        return False

    def _client_registered(self, channel: Any, client: Any, cmd: str) -> bool:
        """Say whether the poller has the connection that is open now."""
        is_known = super()._client_registered(channel, client, cmd)
        sock = self._chan_to_sock.get((channel, client, cmd))
        return is_known and sock is client.connection._sock

    def on_poll_start(self) -> None:
        if monotonic() >= self._rests_until:
            try:
                self._serve_channels()
                self._is_lost = False
            except self._connection_errors() as error:
                if not self.survives(error):
                    raise
        self.has_delivered = False
        for channel in list(self._channels):
            self.has_delivered |= channel.hand_over_some()
        if self.has_delivered:
            _turn_again()

    def _connection_errors(self) -> tuple[type[Exception], ...]:
        return next((channel.connection_errors for channel in self._channels), ())

    def _serve_channels(self) -> None:
        """Flush what is due, take what there is room for, and wait for more."""
        for channel in self._channels:
            channel.refuse_overdue()
            channel.qos.settle_again()
        # All channels share the leases: one of them flushes.
        channel = next(iter(self._channels), None)
        if channel is not None and channel.leases.has_pending:
            channel.settle_due()
        super().on_poll_start()

    def get(self, callback: Any, timeout: float | None = None) -> Any:
        # Without an event loop, a take may have delivered what this call waits for.
        self.on_poll_start()
        if not self.has_delivered:
            super().get(callback, timeout)


def _turn_again() -> None:
    """Have the loop turn once more before it sleeps.

    A delivery leaves it work, such as an acknowledgement or a job to write to a child, and the loop
    has looked for both before this delivery.
    """
    hub = get_event_loop()
    if hub is not None and hub._waker is not None:
        hub._waker.wake()
