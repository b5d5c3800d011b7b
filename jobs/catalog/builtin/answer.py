"""What an HTTP answer means for the run: a result, another attempt, or a failure. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.message import Message
from email.utils import parsedate_to_datetime
from typing import Final

from jobs.catalog.builtin.errors import HttpRequestFailed, HttpRequestRefused
from jobs.catalog.builtin.request import Request, is_expected
from jobs.catalog.builtin.wire import Answer

RETRY_AFTER_LIMIT: Final = 86_400.0
TEMPORARY: Final = frozenset({408, 425, 429})
KEPT_HEADERS: Final = ("content-type", "content-length", "date", "etag", "location", "retry-after")
HEADER_LIMIT: Final = 1_024
# Each takes six bytes in JSON: a body of them would exceed the limit of results.
_NO_TEXT: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")
# Others are decoded as UTF-8: some codecs take quadratic time.
CHARSETS: Final = frozenset({"utf-8", "us-ascii", "iso-8859-1", "windows-1252"})


def refuse_unexpected(request: Request, answer: Answer, *, expected: str) -> None:
    """Raise HttpRequestFailed or HttpRequestRefused unless the status is expected."""
    status = answer.status
    if is_expected(status, expected):
        return
    problem = f"answered {status}, {expected} was expected"
    if status in TEMPORARY or status >= 500:
        raise HttpRequestFailed(str(request), problem, retry_after(answer.headers))
    if 300 <= status < 400:
        problem += "; redirects are not followed, give the final URL"
    raise HttpRequestRefused(str(request), problem)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that a Retry-After header asks to wait, at most a day."""
    text = (headers.get("Retry-After") or "")[:HEADER_LIMIT].strip()
    if text.isascii() and text.isdigit():
        # More digits are beyond the limit, and slow to convert.
        return min(float(text[:12]), RETRY_AFTER_LIMIT)
    until = _http_date(text)
    if until is None:
        return None
    # By the server's own clock, which may differ from ours.
    now = _http_date((headers.get("Date") or "")[:HEADER_LIMIT]) or datetime.now(UTC)
    return min(max((until - now).total_seconds(), 0.0), RETRY_AFTER_LIMIT)


def _http_date(text: str) -> datetime | None:
    try:
        moment = parsedate_to_datetime(text)
    except (TypeError, ValueError, OverflowError):
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def kept_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers of KEPT_HEADERS, cut to HEADER_LIMIT characters."""
    return {name: value[:HEADER_LIMIT] for name in KEPT_HEADERS if (value := headers.get(name))}


def text_of(answer: Answer) -> str:
    """Return the body as text; undecodable bytes and control characters become U+FFFD."""
    header = Message()
    # Cut first: the parser takes quadratic time.
    header["Content-Type"] = (answer.headers.get("Content-Type") or "")[:HEADER_LIMIT]
    charset = (header.get_content_charset() or "utf-8").lower()
    text = answer.body.decode(charset if charset in CHARSETS else "utf-8", errors="replace")
    return _NO_TEXT.sub("\N{REPLACEMENT CHARACTER}", text)
