"""The poller: what a worker's loop does for its channels on every turn."""

from __future__ import annotations

from typing import Any

from kombu.asynchronous import get_event_loop
from kombu.transport import redis


class Poller(redis.MultiChannelPoller):
    """Kombu's poller, which says what is due on every turn."""

    has_delivered = False
    is_in_loop = False
    """Whether an event loop reads the replies."""

    def on_poll_start(self) -> None:
        for channel in self._channels:
            channel.refuse_overdue()
        # They have what is to be said in common: one of them says it.
        channel = next(iter(self._channels), None)
        if channel is not None and channel.leases.has_unsaid:
            channel.settle(waits=False)
        super().on_poll_start()
        self.has_delivered = False
        for channel in list(self._channels):
            self.has_delivered |= channel.hand_over_some()
        if self.has_delivered:
            _turn_again()

    def get(self, callback: Any, timeout: float | None = None) -> Any:
        # Without an event loop: what a take has delivered is the answer to this call.
        self.on_poll_start()
        if not self.has_delivered:
            super().get(callback, timeout)


def _turn_again() -> None:
    """Have the loop turn once more before it sleeps: a delivery leaves work to it.

    An acknowledgement, say, or a job to be written to a pool's child: the loop looks for both
    before it polls, and this delivery is later than that.
    """
    hub = get_event_loop()
    if hub is not None and hub._waker is not None:
        hub._waker.wake()
