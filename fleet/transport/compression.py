"""Compressed bodies, unpacked within a limit: a few bytes can stand for gigabytes."""

from __future__ import annotations

import bz2
import lzma
import zlib
from functools import partial
from typing import Any, Final

UNPACKED_LIMIT: Final = 16 * 2**20
"""The longest body after it is unpacked, in bytes: a worker does that in its event loop."""
_MEMORY_LIMIT: Final = 2**27
_LZMA: Final = partial(lzma.LZMADecompressor, memlimit=_MEMORY_LIMIT)
_UNPACKERS: Final[dict[object, Any]] = {
    **dict.fromkeys(("application/x-gzip", "gzip", "zlib"), zlib.decompressobj),
    **dict.fromkeys(("application/x-bz2", "bzip2", "bzip"), bz2.BZ2Decompressor),
    **dict.fromkeys(("application/x-lzma", "lzma", "xz"), _LZMA),
}
"""By Kombu's names of them."""


class NotUnpacked(ValueError):
    """A body is too long or cut off, or its compression is one that is not read here."""


def unpacked(body: object, method: object) -> bytes:
    """Return a compressed body as it was; raises NotUnpacked, or what its compression raises.

    Brotli and Zstandard, which Kombu knows where their packages are installed, are refused.
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
