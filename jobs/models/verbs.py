"""The verbs behind methods of models, such as `run.cancel()`; `jobs.apps` installs them.

Models with verbs import this module, so it names none of them: `jobs.apps` says which types a verb
takes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, NamedTuple, Protocol, TypeVar
from uuid import UUID

from django.contrib.auth.base_user import AbstractBaseUser

from jobs.models.token import ApiToken

Job = TypeVar("Job")
Run = TypeVar("Run")
Submission = TypeVar("Submission")
Backfill = TypeVar("Backfill")
_Given_contra = TypeVar("_Given_contra", contravariant=True)
_Made_co = TypeVar("_Made_co", covariant=True)

Actor = AbstractBaseUser | ApiToken | None
"""The user or the API token that acts; None for code."""


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


class OfSubmission(Protocol[_Given_contra]):
    """A verb on all runs of a submission."""

    def __call__(
        self, submission: _Given_contra, *, actor: Actor = None, reason: str = ""
    ) -> Cancelled: ...


class MakeBackfill(Protocol[_Given_contra, _Made_co]):
    """A verb that runs the past due times of a job in a span."""

    def __call__(
        self,
        job: _Given_contra,
        start: datetime,
        end: datetime,
        *,
        actor: Actor = None,
        reason: str = "",
    ) -> _Made_co: ...


@dataclass(frozen=True, slots=True)
class Verbs(Generic[Job, Run, Submission, Backfill]):
    """The verbs of models, and of tasks."""

    cancel_runs: OfRuns
    reopen_runs: OfRuns
    cancel_submission: OfSubmission[Submission]
    why_waiting: Callable[[Run], str]
    run_job: Callable[[Job], Run]
    backfill: MakeBackfill[Job, Backfill]
    submit: Callable[..., Run]
    submit_many: Callable[..., Submission]


AnyVerbs = Verbs[Any, Any, Any, Any]

_installed: list[AnyVerbs] = []


def install(verbs: AnyVerbs) -> None:
    """Set the verbs that methods of models call."""
    _installed[:] = [verbs]


def verbs() -> AnyVerbs:
    """Return the verbs, once Django has loaded its apps."""
    [installed] = _installed
    return installed
