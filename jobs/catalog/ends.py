"""Ends of runs and submissions as hooks and other listeners get them. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Self
from uuid import UUID

from jobs.core.states import State


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnd:
    """The end of a run. After an operator's retry, a run may end again."""

    run_id: UUID
    owner: str
    """The owner's slug; empty if it was deleted since."""
    owner_id: int
    task: str
    """The task's name; empty if the run was removed since, and so are attempt, error and labels."""
    job_id: int | None
    submission_id: int | None
    state: State
    """One of ENDED: succeeded, failed, cancelled, expired."""
    ended_at: datetime
    attempt: int
    error_type: str
    labels: Mapping[str, str]

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON can hold it."""
        facts = asdict(self)
        return {**facts, "run_id": str(self.run_id), "ended_at": self.ended_at.isoformat()}

    @classmethod
    def from_json(cls, facts: Mapping[str, Any]) -> Self:
        """Return what `as_json` has returned."""
        return cls(
            **{
                **facts,
                "run_id": UUID(facts["run_id"]),
                "state": State(facts["state"]),
                "ended_at": datetime.fromisoformat(facts["ended_at"]),
            }
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmissionEnd:
    """All runs of a submission have ended, and no backfill adds others."""

    submission_id: int
    owner: str
    owner_id: int
    task: str
    label: str
    counts: Mapping[State, int]
    """How many of its runs are in each state."""
    ended_at: datetime
    """The end of its last run."""

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON can hold it."""
        return {
            **asdict(self),
            "counts": {state.value: count for state, count in self.counts.items()},
            "ended_at": self.ended_at.isoformat(),
        }

    @classmethod
    def from_json(cls, facts: Mapping[str, Any]) -> Self:
        """Return what `as_json` has returned."""
        return cls(
            **{
                **facts,
                "counts": {State(state): count for state, count in facts["counts"].items()},
                "ended_at": datetime.fromisoformat(facts["ended_at"]),
            }
        )
