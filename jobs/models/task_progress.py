"""What a running task has said: how far it is, and the lines of its log."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Self

from django.db import models


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
        return cls.stored(stored) if stored and stored["token"] == token else None

    @classmethod
    def stored(cls, facts: Mapping[str, Any]) -> Self:
        """Return what write_progress.sql has written, whichever attempt it was."""
        at = datetime.fromtimestamp(facts["at"], UTC)
        return cls(facts["done"], facts["total"], facts["note"], at)

    @property
    def percent(self) -> int | None:
        """The part that is done, rounded down, 100 at most; None without a total."""
        return None if not self.total else min(100, int(100 * self.done / self.total))

    def __str__(self) -> str:
        return self.shown("{:,.{}f}".format)

    def shown(self, number: Callable[[float, int], str]) -> str:
        """Return percent, steps and note; `number` writes a number with so many decimals."""
        steps = _written(self.done, number)
        if self.total is not None:
            steps = f"{steps} / {_written(self.total, number)}"
        if self.percent is not None:
            steps = f"{self.percent} % · {steps}"
        return f"{steps} · {self.note}" if self.note else steps


def _written(steps: float, number: Callable[[float, int], str]) -> str:
    return number(steps, 0 if float(steps).is_integer() else 1)


class LogRow(models.Model):
    """Some lines of an attempt, as `jobs.catalog.run_log` encodes them; partitioned by `run_id`."""

    pk = models.CompositePrimaryKey("run_id", "token", "first_line")
    run_id = models.UUIDField()
    token = models.PositiveIntegerField()
    # Lines are numbered from 1. Numbers that are in no row were left out.
    first_line = models.PositiveIntegerField()
    line_count = models.PositiveIntegerField()
    first_at = models.DateTimeField()
    key = models.SmallIntegerField(db_default=0)
    data = models.BinaryField()

    class Meta:
        db_table = "jobs_log"

    def __str__(self) -> str:
        return f"{self.run_id}, lines from {self.first_line}"
