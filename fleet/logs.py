"""Log lines that are events with facts, by Python's own logging."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final


@dataclass(eq=False)
class Event:
    """An event of the log, declared once, as a constant of a catalogue."""

    name: str
    """Stable: programs look for it. It is the constant's name in lower case."""
    level: int
    text: str
    """The line for people: a sentence for `str.format` with the names of facts."""
    advice: str
    """What it means to an operator, and what to do."""

    @classmethod
    def info(cls, text: str, advice: str) -> Event:
        return cls("", logging.INFO, text, advice)

    @classmethod
    def warning(cls, text: str, advice: str) -> Event:
        return cls("", logging.WARNING, text, advice)

    @classmethod
    def error(cls, text: str, advice: str) -> Event:
        return cls("", logging.ERROR, text, advice)

    @classmethod
    def critical(cls, text: str, advice: str) -> Event:
        return cls("", logging.CRITICAL, text, advice)

    @staticmethod
    def name_all(catalogue: Mapping[str, object]) -> None:
        """Name each event after its constant: the last line of a catalogue."""
        for constant, event in catalogue.items():
            if isinstance(event, Event):
                event.name = constant.lower()

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


# --- facts that every line of a process or a block has -------------------------------------
_of_process: dict[str, Any] = {}
_of_block: ContextVar[Mapping[str, Any]] = ContextVar(
    "fairshift_log_facts", default=MappingProxyType({})
)
BOUND: Final = ("worker", "run_id", "owner", "task", "attempt", "trace_id")
"""The names of bound facts, in the order of a line."""


def bind_process(**facts: Any) -> None:
    """Add facts to every later line of this process, and of those that it forks."""
    _of_process.update(facts)


@contextmanager
def bind(**facts: Any) -> Iterator[None]:
    """Add facts to the lines that this thread or async task logs in the block."""
    slot = _of_block.set({**_of_block.get(), **facts})
    try:
        yield
    finally:
        _of_block.reset(slot)


def bound_facts() -> dict[str, Any]:
    """Return the facts that a line has here; those of the block win over those of the process."""
    return {**_of_process, **_of_block.get()}


class BoundFacts(logging.Filter):
    """Gives each record `event` and every fact of `BOUND` as attributes; empty where it has none.

    For projects without structlog: in a handler's `filters`, so that its format may name them.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        facts = bound_facts() | {"event": getattr(record, "event", "")}
        for name in ("event", *BOUND):
            setattr(record, name, facts.get(name, ""))
        return True
