"""The message that consumers get: unpacked within a limit, settled only while it is leased."""

from __future__ import annotations

import sys
from typing import Any, Final

from kombu.transport import virtual

from fleet.transport.compression import unpacked
from fleet.transport.envelope import read_json, refuse_limits

JSON: Final = "application/json"


class Message(virtual.Message):
    """Kombu's message, unpacked within a limit, with a faster path for JSON.

    Raises MalformedMessage for time limits that would end a process of the pool.
    """

    def __init__(self, payload: Any, channel: Any = None, **kwargs: Any) -> None:
        headers = payload.get("headers")
        method = None
        if isinstance(headers, dict):
            refuse_limits(headers.get("timelimit"))
            method = headers.pop("compression", None)
        super().__init__(payload, channel=channel, **kwargs)
        if not method:
            return
        # Restored: this payload is what is given back.
        headers["compression"] = method
        try:
            self.body = unpacked(self.body, method)
        except Exception:
            # Kombu raises these when the consumer decodes the message.
            self.errors.append(sys.exc_info())

    def _decode(self) -> Any:
        is_json = self.content_type == JSON and (self.accept is None or JSON in self.accept)
        if is_json and isinstance(self.body, bytes) and self.body:
            return read_json(self.body.decode())
        return super()._decode()

    def ack_log_error(self, *args: Any, **kwargs: Any) -> None:
        if self._may_settle():
            super().ack_log_error(*args, **kwargs)

    def reject_log_error(self, *args: Any, **kwargs: Any) -> None:
        if self._may_settle():
            super().reject_log_error(*args, **kwargs)

    def _may_settle(self) -> bool:
        """Whether the channel is still open, or this process still has the lease.

        A message of a stock queue is delivered again after its connection is lost. A lease of a
        fair queue outlives connections.
        """
        return not self.channel.closed or self.delivery_tag in self.channel.leases
