"""One blocking command that waits for wake-ups of fair queues and messages of stock queues."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial
from queue import Empty
from time import monotonic
from typing import Any, Final

from kombu.exceptions import OperationalError
from kombu.transport import redis
from kombu.utils.objects import cached_property
from redis.exceptions import ResponseError

from fleet import log_events
from fleet.keys import queue_key
from fleet.transport.pending_take import PendingTake
from fleet.transport.quarantine import SHAPE_ERRORS

logger = logging.getLogger(__name__)

STOCK_WAIT_SECONDS: Final = 1.0
BROADCAST_READ_SECONDS: Final = 1.0
"""How long a read waits for the rest of a message: the loop reads when its beginning is there."""


class Waiting(redis.Channel):
    """Kombu's channel, which sends the blocking command and reads its reply."""

    _in_poll: Any
    _brpop_sent_at: Any
    _pending_take: PendingTake | None = None
    _waits_for_fair = False
    _waits_for_stock = False
    _end_take: Callable[[PendingTake], None]
    _repair: Callable[..., None]

    def _wait(self, fair: Sequence[str], seconds: float) -> None:
        """Block on the wake-ups of the fair queues, and on the stock queues as Kombu does.

        A wake-up looks like a message, for which `_woken` is called in place of a consumer.
        """
        wakes = [queue_key(queue, "wake") for queue in fair]
        for key in wakes:
            self.connection._callbacks[key] = _woken
        stock = [
            queue
            for queue in self._queue_cycle.consume(len(self.active_queues))
            if queue not in fair
        ]
        plain = [self._q_for_pri(queue, step) for step in self.priority_steps for queue in stock]
        if plain:
            seconds = min(seconds, STOCK_WAIT_SECONDS)
        self._waits_for_stock = bool(plain)
        self._waits_for_fair = True
        self._in_poll = self.client.connection
        self._brpop_sent_at = monotonic()
        self.client.connection.send_command("BRPOP", *wakes, *plain, seconds)

    def _brpop_read(self, **options: Any) -> Any:
        try:
            result = self._read(**options)
        except self.connection_errors as error:
            is_open = self.client.connection._sock is not None
            if is_open or not self.connection.cycle.survives(error):
                raise
            raise Empty from error
        except Empty:
            self.connection.cycle.answered()
            raise
        self.connection.cycle.answered()
        return result

    def _receive(self) -> Any:
        try:
            return super()._receive()
        except self.connection_errors as error:
            if self._in_listen is not None or not self.connection.cycle.survives(error):
                raise
            raise Empty from error

    def _read(self, **options: Any) -> Any:
        if self._pending_take is not None:
            return self._end_take(self._pending_take)
        try:
            return super()._brpop_read(**options)
        except ResponseError as error:
            self._repair(self.active_queues, error)
            # As at a timeout: the next turn of the loop takes from all queues.
            raise Empty from error
        except SHAPE_ERRORS as error:
            # A wake-up or a message that other software wrote. BRPOP has removed it.
            log_events.MESSAGE_DROPPED.log(logger, error=error)
            raise Empty from error

    @cached_property
    def subclient(self) -> Any:
        """The connection for broadcast messages; a read from it has a time limit.

        redis-py opens a lost one again in the middle of a read, and would then wait for a message
        without any limit, while the loop stands still.
        """
        pubsub = self._create_client(asynchronous=True).pubsub()
        read = partial(pubsub.parse_response, block=False, timeout=BROADCAST_READ_SECONDS)
        pubsub.parse_response = read
        return pubsub

    def _receive_one(self, client: Any) -> Any:
        try:
            return super()._receive_one(client)
        except Empty:
            return None
        except Exception as error:
            # Kombu counts KeyError among the errors of a connection.
            lost = (*self.connection_errors, OperationalError)
            if isinstance(error, lost) and not isinstance(error, SHAPE_ERRORS):
                raise
            # Any client can publish to a fanout exchange, and Celery's listeners raise any error.
            log_events.BROADCAST_INVALID.log(logger, error=error)
            return None


def _woken(_token: object) -> None:
    """Do nothing: the next turn of the loop takes."""
