"""A booting worker's hello to the others (Celery's mingle), safe against any reply.

Every client of the broker may reply. In Celery's own hello, a malformed reply ends the worker, and
it waits as long as replies come.
"""

from __future__ import annotations

import logging
from time import monotonic
from typing import Any, Final

from celery.worker import state
from kombu.exceptions import ContentDisallowed, DecodeError

from fleet import log_events
from fleet.transport.quarantine import SHAPE_ERRORS

logger = logging.getLogger(__name__)

REPLY_SECONDS: Final = 1.0
"""The time for the next reply."""
REPLIES_SECONDS: Final = 5.0
"""The time for all of them."""


def say_hello(consumer: Any) -> dict[str, dict[str, Any]]:
    """Greet the other workers; return what they reply, by worker."""
    replies = consumer.app.control.broadcast(
        "hello",
        arguments={"from_node": consumer.hostname, "revoked": list(state.revoked)},
        connection=_Brief(consumer.connection, REPLIES_SECONDS),
        timeout=REPLY_SECONDS,
        reply=True,
    )
    replied: dict[str, dict[str, Any]] = {}
    for reply in replies:
        facts = reply if isinstance(reply, dict) else {}
        replied.update({name: answer for name, answer in facts.items() if isinstance(answer, dict)})
    replied.pop(consumer.hostname, None)
    return replied


class _Brief:
    """A connection on which replies are read for a limited time, and junk is dropped."""

    def __init__(self, connection: Any, seconds: float) -> None:
        self._connection = connection
        self._until = monotonic() + seconds

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    def drain_events(self, timeout: float) -> Any:
        if monotonic() > self._until:
            raise TimeoutError("replies have come for long enough")
        try:
            return self._connection.drain_events(timeout=timeout)
        except (*SHAPE_ERRORS, DecodeError, ContentDisallowed) as error:
            log_events.REPLY_DROPPED.log(logger, error=error)
