"""The verbs behind methods of models, such as `run.cancel()`; `jobs.apps` installs them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple, Protocol
from uuid import UUID

from django.contrib.auth.base_user import AbstractBaseUser

if TYPE_CHECKING:
    from jobs.models.job import Job
    from jobs.models.recurring import Backfill
    from jobs.models.run import Run
    from jobs.models.submission import Submission


Actor = AbstractBaseUser | None
"""The user who acts; None for code."""


class Cancelled(NamedTuple):
    """How many runs a cancel has moved; true if it moved any."""

    cancelled: int = 0
    """Waiting runs, which have ended."""
    stopping: int = 0
    """Active runs, which their workers are asked to stop."""

    def __bool__(self) -> bool:
        return self != (0, 0)


class OfRuns(Protocol):
    """A verb on runs by their ids; returns the ids of those that moved."""

    def __call__(
        self, run_ids: Sequence[UUID], *, actor: Actor = None, reason: str = ""
    ) -> list[UUID]: ...


class OfSubmission(Protocol):
    """A verb on all runs of a submission."""

    def __call__(
        self, submission: Submission, *, actor: Actor = None, reason: str = ""
    ) -> Cancelled: ...


class MakeBackfill(Protocol):
    """A verb that runs the past due times of a job in a span."""

    def __call__(
        self, job: Job, start: datetime, end: datetime, *, actor: Actor = None, reason: str = ""
    ) -> Backfill: ...


@dataclass(frozen=True, slots=True)
class Verbs:
    """The verbs of models."""

    cancel_runs: OfRuns
    reopen_runs: OfRuns
    cancel_submission: OfSubmission
    why_waiting: Callable[[Run], str]
    run_job: Callable[[Job], Run]
    backfill: MakeBackfill


_installed: list[Verbs] = []


def install(verbs: Verbs) -> None:
    """Set the verbs that methods of models call."""
    _installed[:] = [verbs]


def verbs() -> Verbs:
    """Return the verbs, once Django has loaded its apps."""
    [installed] = _installed
    return installed
