"""What several celery-beats share: a lease, by which one of them leads, and a ledger of sends."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol


class LeaseLost(Exception):
    """Another beat leads, or may lead."""


@dataclass(frozen=True, slots=True)
class Sending:
    """One send of an entry: which, when it was due, and its task id."""

    name: str
    due_at: datetime
    task_id: str


class Ledger(Protocol):
    """A record of sends, which the next leader reads."""

    def unsent(self) -> Iterable[Sending]:
        """Return the sends that were noted and may not be published."""

    def note(self, sending: Sending, *, holder: str) -> bool:
        """Note a send before its publish; False if it is published already.

        Raises LeaseLost when the lease is not that holder's.
        """

    def sent(self, sending: Sending) -> None:
        """Note that it is published."""


@dataclass(frozen=True, slots=True)
class Lead:
    """The lease and the ledger that beats share.

    `acquire(name, holder, seconds)` takes or renews a lease and says whether it is the holder's
    now; `release(name, holder)` gives it up.
    """

    acquire: Callable[[str, str, float], bool]
    release: Callable[[str, str], None]
    ledger: Ledger
    name: str = "beat"
