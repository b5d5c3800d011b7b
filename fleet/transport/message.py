"""The message that consumers get: settled only while it is leased, and unpacked within a limit.

A few bytes can unpack to gigabytes.
"""

from __future__ import annotations

import bz2
import lzma
import sys
import zlib
from functools import partial
from typing import Any, Final

from kombu.transport import virtual

from fleet.transport.envelope import read_json, refuse_limits

JSON: Final = "application/json"
UNPACKED_LIMIT: Final = 16 * 2**20
"""The longest unpacked body, in bytes: a worker unpacks in its event loop."""
_MEMORY_LIMIT: Final = 2**27
_LZMA: Final = partial(lzma.LZMADecompressor, memlimit=_MEMORY_LIMIT)
_UNPACKERS: Final[dict[object, Any]] = {
    **dict.fromkeys(("application/x-gzip", "gzip", "zlib"), zlib.decompressobj),
    **dict.fromkeys(("application/x-bz2", "bzip2", "bzip"), bz2.BZ2Decompressor),
    **dict.fromkeys(("application/x-lzma", "lzma", "xz"), _LZMA),
}
"""By Kombu's names."""


class NotUnpacked(ValueError):
    """A body is too long or cut off, or its compression is not supported."""


def unpacked(body: object, method: object) -> bytes:
    """Return the unpacked body; raise NotUnpacked, or an error of the compression.

    Brotli and Zstandard, which Kombu supports with extra packages, are refused.
    """
    make = _UNPACKERS.get(method) if isinstance(method, str) else None
    if make is None:
        raise NotUnpacked(f"compression {method!r:.40} is none of gzip, bzip2 and lzma")
    if not isinstance(body, bytes):
        raise NotUnpacked("a compressed body is bytes")
    unpacker = make()
    found: bytes = unpacker.decompress(body, UNPACKED_LIMIT + 1)
    if len(found) > UNPACKED_LIMIT:
        raise NotUnpacked(f"the body unpacks to more than the limit of {UNPACKED_LIMIT:,} bytes")
    if not unpacker.eof:
        raise NotUnpacked("the compressed body was cut off")
    return found


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
