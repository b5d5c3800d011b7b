"""The lease and the ledger of sends that several celery-beats share; the lease's holder leads."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol


class LeaseLost(Exception):
    """Another beat leads, or may lead."""


@dataclass(frozen=True, slots=True)
class Sending:
    """One send of an entry: the entry's name, its due time, and the task id."""

    name: str
    due_at: datetime
    task_id: str


class Ledger(Protocol):
    """A record of sends, which the next leader reads."""

    def unsent(self) -> Iterable[Sending]:
        """Return the noted sends whose publish is not noted: it may have failed."""

    def note(self, sending: Sending, *, holder: str) -> bool:
        """Note a send before its publish; False if it is published already.

        Raises LeaseLost when the lease is not that holder's.
        """

    def sent(self, sending: Sending) -> None:
        """Note that it is published."""


@dataclass(frozen=True, slots=True)
class Lead:
    """The lease and the ledger that beats share.

    `acquire(name, holder, seconds)` takes or renews the lease, and returns whether this holder has
    it now; `release(name, holder)` gives it up.
    """

    acquire: Callable[[str, str, float], bool]
    release: Callable[[str, str], None]
    ledger: Ledger
    name: str = "beat"
