"""How far a running task is, as it has said itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Self


@dataclass(frozen=True, slots=True)
class TaskProgress:
    """The last progress of an attempt: steps that are done, of a total if it is known."""

    done: float
    total: float | None
    note: str
    at: datetime

    @classmethod
    def of(cls, stored: Mapping[str, Any] | None, *, token: int) -> Self | None:
        """Return what a run's row has; None if its newest attempt has written none."""
        if not stored or stored["token"] != token:
            return None
        at = datetime.fromtimestamp(stored["at"], UTC)
        return cls(stored["done"], stored["total"], stored["note"], at)

    @property
    def percent(self) -> int | None:
        """The part that is done, rounded down, 100 at most; None without a total."""
        return None if not self.total else min(100, int(100 * self.done / self.total))

    def __str__(self) -> str:
        steps = _shown(self.done)
        if self.total is not None:
            steps = f"{steps} / {_shown(self.total)}"
        if self.percent is not None:
            steps = f"{self.percent} % · {steps}"
        return f"{steps} · {self.note}" if self.note else steps


def _shown(number: float) -> str:
    return f"{number:,.0f}" if float(number).is_integer() else f"{number:,.1f}"
