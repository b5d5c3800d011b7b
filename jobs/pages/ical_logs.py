"""Masks the secret of a calendar's feed in log lines with the path of a request."""

from __future__ import annotations

import logging
import re
from collections.abc import MutableMapping
from typing import Any, Final

LOGGERS: Final = (
    "django.request",
    "django.security.csrf",
    "django.server",
    "gunicorn.access",
    "gunicorn.error",
    "uvicorn.access",
    "uvicorn.error",
)
"""Loggers of paths. A logger's filter does not see the lines of its child loggers."""
# The path in jobs/urls.py, at any mount point.
_SECRET: Final = re.compile(r"(calendars/)[^/\s]+(\.ics)")


def hide_feed_secrets() -> None:
    """Make these loggers write `calendars/….ics`; repeating the call changes nothing."""
    for name in LOGGERS:
        # A logger adds the same function only once.
        logging.getLogger(name).addFilter(without_secret)


def without_secret(record: logging.LogRecord) -> bool:
    """Mask secrets in a line's text and arguments; return True, so that the line is logged."""
    record.msg = _masked(record.msg)
    if isinstance(record.args, tuple):
        record.args = tuple(map(_masked, record.args))
    elif isinstance(record.args, MutableMapping):
        for key, value in record.args.items():
            record.args[key] = _masked(value)
    return True


def _masked(value: Any) -> Any:
    return _SECRET.sub(r"\1…\2", value) if isinstance(value, str) else value
