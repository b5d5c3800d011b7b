"""Lines of a log, and their bytes as they are stored.

A chunk is JSON: a list of [milliseconds since 1970, level, logger, text], deflated if that is
shorter. Lines of an attempt are numbered from 1; numbers that are in no chunk were left out.
"""

from __future__ import annotations

import json
import logging
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from jobs.core.crypto import Place, log_field, open_bytes

LEVELS: Final[Mapping[str, int]] = {
    "DEBUG": logging.DEBUG,
    "INFO": logging.INFO,
    "WARNING": logging.WARNING,
    "ERROR": logging.ERROR,
    "CRITICAL": logging.CRITICAL,
    "OFF": logging.CRITICAL + 1,
}
"""The levels of a log by name; a log that is off has no lines."""
LINE_BYTES: Final = 8_192
"""The longest text of a line."""
OVERHEAD: Final = 32
"""Bytes that a line counts beside its text."""
_JSON: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
_LOGGER_CHARACTERS: Final = 100
_READ_CHARACTERS: Final = 65_536
"""Characters of each end of a longer text that are looked at."""
_DEFLATED_FROM: Final = 256
_LARGEST: Final = 16 * 2**20
"""Most bytes of a chunk that is read: raw SQL may have written a larger one."""


class Line(NamedTuple):
    """One line: its time by the worker's clock in seconds since 1970, and what was logged."""

    at: float
    level: int
    logger: str
    text: str

    @property
    def size(self) -> int:
        return len(self.text) + OVERHEAD


def text_of(record: logging.LogRecord) -> str:
    """Return what a record says, with its traceback; never raises."""
    try:
        said: Any = record.msg
        text = _of_structlog(said) if isinstance(said, dict) else record.getMessage()
    except Exception:
        text = f"{record.msg!r:.500} {record.args!r:.500}"
    if record.exc_info and record.exc_info[0] is not None:
        text = f"{text}\n{_FORMATTER.formatException(record.exc_info)}"
    return text


_FORMATTER: Final = logging.Formatter()


def _of_structlog(event: Mapping[str, Any]) -> str:
    """Return an event of structlog, which its own formatter would write later."""
    known = {"event", "level", "logger", "timestamp", "_record", "_from_structlog"}
    facts = [f"{name}={value!r}" for name, value in event.items() if name not in known]
    return " ".join([str(event.get("event", "")), *facts])


def fitted(text: str, redacted: Callable[[str], str]) -> str:
    """Return a text as it is stored: redacted, UTF-8 without NUL, cut in its middle."""
    if len(text) <= LINE_BYTES:
        text = redacted(text)
        if text.isascii() and "\x00" not in text and len(text) <= LINE_BYTES:
            return text
        ends, left_out = [text], 0
    elif len(text) > 2 * _READ_CHARACTERS:
        ends = [redacted(text[:_READ_CHARACTERS]), redacted(text[-_READ_CHARACTERS:])]
        left_out = len(text) - sum(map(len, ends))
    else:
        ends, left_out = [redacted(text)], 0
    parts = [end.replace("\x00", "\\x00").encode("utf-8", "backslashreplace") for end in ends]
    size = sum(map(len, parts))
    if not left_out and size <= LINE_BYTES:
        return parts[0].decode()
    half = (LINE_BYTES - 64) // 2
    cut = left_out + size - 2 * half
    head, tail = (part.decode(errors="ignore") for part in (parts[0][:half], parts[-1][-half:]))
    return f"{head} … {cut} bytes left out … {tail}"


def encoded(lines: Sequence[Line]) -> bytes:
    """Return the bytes of a chunk."""
    rows = [
        [round(at * 1000), level, logger[:_LOGGER_CHARACTERS], text]
        for at, level, logger, text in lines
    ]
    data = _JSON.encode(rows).encode(errors="replace")
    return data if len(data) < _DEFLATED_FROM else zlib.compress(data, 1)


def opened(
    data: bytes | memoryview, *, key: int, token: int, first_line: int, place: Place
) -> list[Line]:
    """Return the lines of a stored chunk; raise UnknownKey, Damaged, or ValueError."""
    return decoded(open_bytes(data, key=key, field=log_field(token, first_line), place=place))


def decoded(data: bytes) -> list[Line]:
    """Return the lines of a chunk; raise ValueError for other bytes."""
    try:
        if data[:1] != b"[":
            data = zlib.decompressobj().decompress(data, _LARGEST)
        return [
            Line(at / 1000, int(level), str(logger), str(text))
            for at, level, logger, text in json.loads(data)
        ]
    except (zlib.error, TypeError, ValueError) as error:
        raise ValueError(f"no lines of a log: {error}") from error
