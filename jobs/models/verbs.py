"""The verbs behind methods of models, such as `run.cancel()`; `jobs.apps` installs them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from django.contrib.auth.base_user import AbstractBaseUser

from jobs.models.token import ApiToken

if TYPE_CHECKING:  # these modules import this one
    from jobs.models import Backfill, Job, Run, Submission

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


@dataclass(frozen=True, slots=True)
class Verbs:
    """The verbs of models, and of tasks."""

    cancel_runs: Callable[..., list[UUID]]
    reopen_runs: Callable[..., list[UUID]]
    cancel_submission: Callable[..., Cancelled]
    why_waiting: Callable[[Run], str]
    run_job: Callable[[Job], Run]
    backfill: Callable[..., Backfill]
    submit: Callable[..., Run]
    submit_many: Callable[..., Submission]


_installed: list[Verbs] = []


def install(verbs: Verbs) -> None:
    """Set the verbs that methods of models call."""
    _installed[:] = [verbs]


def verbs() -> Verbs:
    """Return the verbs, once Django has loaded its apps."""
    [installed] = _installed
    return installed
