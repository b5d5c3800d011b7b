"""Unpacks compressed bodies within a limit: a few bytes can unpack to gigabytes."""

from __future__ import annotations

import bz2
import lzma
import zlib
from functools import partial
from typing import Any, Final

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
