"""The verbs behind the methods of models, such as `run.cancel()`.

Models stand below the verbs and import none of them: `jobs.apps` hands these over, once, when
Django has loaded its apps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID

    from django.contrib.auth.base_user import AbstractBaseUser

    from jobs.models.job import Job
    from jobs.models.recurring import Backfill
    from jobs.models.run import Run
    from jobs.models.submission import Submission


class Cancelled(NamedTuple):
    """How many runs a cancel has moved; true when it moved any."""

    cancelled: int = 0
    """Runs that waited: they have ended."""
    stopping: int = 0
    """Runs that a worker holds: it is asked to stop them, and they end when it has."""

    def __bool__(self) -> bool:
        return self != (0, 0)


class OfRuns(Protocol):
    """A verb on runs by their ids; returns the ids of those that it moved."""

    def __call__(
        self, run_ids: Sequence[UUID], *, actor: AbstractBaseUser | None = None, reason: str = ""
    ) -> list[UUID]: ...


class OfSubmission(Protocol):
    """A verb on all runs of a submission."""

    def __call__(
        self, submission: Submission, *, actor: AbstractBaseUser | None = None, reason: str = ""
    ) -> Cancelled: ...


class MakeBackfill(Protocol):
    """Ask for the past due times of a job in a span."""

    def __call__(
        self,
        job: Job,
        start: datetime,
        end: datetime,
        *,
        actor: AbstractBaseUser | None = None,
        reason: str = "",
    ) -> Backfill: ...


@dataclass(frozen=True, slots=True)
class Verbs:
    """What methods of models call."""

    cancel_runs: OfRuns
    reopen_runs: OfRuns
    cancel_submission: OfSubmission
    why_waiting: Callable[[Run], str]
    run_job: Callable[[Job], Run]
    backfill: MakeBackfill


_installed: list[Verbs] = []


def install(verbs: Verbs) -> None:
    """Take the verbs that methods of models call from now on."""
    _installed[:] = [verbs]


def verbs() -> Verbs:
    """Return the verbs; a model's method is called after Django has loaded its apps."""
    [installed] = _installed
    return installed
