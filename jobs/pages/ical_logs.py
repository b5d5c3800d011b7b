"""Takes the secret of a calendar's feed out of log lines that hold the path of a request."""

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
"""Those that log paths. A filter is for the lines of its own logger, not of loggers below it."""
# As in jobs/urls.py, wherever a project has mounted that.
_SECRET: Final = re.compile(r"(calendars/)[^/\s]+(\.ics)")


def hide_feed_secrets() -> None:
    """Have these loggers write `calendars/….ics`; repeating the call changes nothing."""
    for name in LOGGERS:
        # The same function each time: a logger adds a filter once.
        logging.getLogger(name).addFilter(without_secret)


def without_secret(record: logging.LogRecord) -> bool:
    """Mask secrets in a line's text and in its values, which keep their number and names."""
    record.msg = _masked(record.msg)
    if isinstance(record.args, tuple):
        record.args = tuple(map(_masked, record.args))
    elif isinstance(record.args, MutableMapping):
        for key, value in record.args.items():
            record.args[key] = _masked(value)
    return True


def _masked(value: Any) -> Any:
    return _SECRET.sub(r"\1…\2", value) if isinstance(value, str) else value
