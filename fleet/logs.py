"""Log lines that are events with facts, by Python's own logging."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Event:
    """An event of the log, declared once in a catalogue."""

    name: str
    """Stable: programs look for it. Words in lower case, joined by underscores."""
    level: int
    text: str
    """The line for people: a sentence for `str.format` with the names of facts."""
    advice: str
    """What it means to an operator, and what to do."""

    def log(self, logger: logging.Logger, *, exc_info: Any = None, **facts: Any) -> None:
        """Write the line; with `exc_info`, also the traceback of that error.

        True stands for the error being handled. A formatter finds the name and the facts,
        unformatted, in the record's `event` and `facts`.
        """
        if logger.isEnabledFor(self.level):
            extra = {"event": self.name, "facts": facts}
            text = self.text.format_map(facts)
            logger.log(self.level, "%s", text, extra=extra, exc_info=exc_info, stacklevel=2)


def one_line(error: object) -> str:
    """Return an error's text without its line breaks."""
    return " ".join(str(error).split())
