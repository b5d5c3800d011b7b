"""Log lines that name an event and its facts, by Python's own logging."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any


def log_event(
    logger: logging.Logger,
    level: int,
    name: str,
    facts: Mapping[str, Any],
    *,
    exc_info: bool = False,
) -> None:
    """Write a line `name key=value …`; with `exc_info`, also the traceback being handled.

    A formatter finds both, unformatted, in the record's `event` and `facts`.
    """
    text = " ".join([name, *(f"{key}=%s" for key in facts)])
    extra = {"event": name, "facts": facts}
    logger.log(level, text, *facts.values(), extra=extra, exc_info=exc_info, stacklevel=2)
