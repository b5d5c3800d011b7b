"""Runs in answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any, Self
from uuid import UUID

from pydantic import BaseModel, Field

from jobs.actions import Done
from jobs.api.kit.answers import WITH_BYTES, facts_of
from jobs.catalog.redaction import hidden, hidden_arguments
from jobs.core import barrier
from jobs.core.crypto import Damaged, UnknownKey
from jobs.core.states import State
from jobs.models import Attempt, Run
from jobs.models.access import Access
from jobs.runs.looks import answers_of, unanswered
from jobs.runs.reads.errors import message_of, texts_of


class RunError(BaseModel):
    """The last error of a run."""

    type: str
    message: str | None = Field(
        description="Null for callers that may not see arguments: error messages often repeat them."
    )


class TaskProgress(BaseModel):
    """How far the newest attempt is, as its task has said."""

    done: float
    total: float | None
    note: str
    at: datetime

    @classmethod
    def of(cls, run: Run) -> TaskProgress | None:
        found = run.task_progress
        if found is None:
            return None
        return cls(**facts_of(cls, found))


class RunSummary(BaseModel):
    """A run in a list."""

    id: UUID
    owner: str
    task: str
    state: State
    queue: str
    priority: int
    job: str | None = Field(description="The key of its job.")
    submission: int | None
    target: str | None
    labels: dict[str, str]
    attempt: int = Field(description="The number of the newest attempt; 0: none began.")
    last_attempt: int = Field(description="The highest number that an attempt may have.")
    created_at: datetime
    due_at: datetime | None
    next_at: datetime | None = Field(description="When a waiting run is looked at next.")
    deadline_at: datetime | None = Field(description="The last moment of a start.")
    started_at: datetime | None
    ended_at: datetime | None
    progress: TaskProgress | None = Field(
        description="Null if the task of the newest attempt has reported none."
    )
    error: RunError | None

    @classmethod
    def of(cls, run: Run, access: Access, **more: Any) -> Self:
        """Return what a caller sees of a run that was loaded with its owner, job and target."""
        error = None
        if run.error_type:
            error = RunError(type=run.error_type, message=message_of(run, access))
        own = {
            "owner": run.owner.slug,
            "job": run.job.key if run.job else None,
            "submission": run.submission_id,
            "target": run.target.name if run.target else None,
            "attempt": run.attempt_number,
            "last_attempt": run.last_attempt_number,
            "progress": TaskProgress.of(run),
            "error": error,
        }
        return cls(**facts_of(cls, run, **own, **more))


class Arguments(BaseModel):
    """The arguments with which a task is called."""

    model_config = WITH_BYTES

    args: list[Any]
    kwargs: dict[str, Any]


class RunDetails(RunSummary):
    """One run."""

    model_config = WITH_BYTES

    arguments: Arguments | None = Field(
        description="Null for callers that may not see them, and if they cannot be read. Bytes are"
        " in URL-safe base64."
    )
    result: Any = Field(None, description="What the task returned; else as `arguments`.")
    unreadable: str = Field(
        "", description="Why the arguments, or the result, cannot be read and are null."
    )

    @classmethod
    def of_run(cls, run: Run, access: Access) -> Self:
        """Return a run; its arguments and its result only if the caller may see them."""
        if not access.sees_arguments(run.owner_id):
            return cls.of(run, access, arguments=None, result=None, unreadable="")
        arguments, problem = _read(lambda: hidden_arguments(run.task, *run.arguments))
        result, other = _read(lambda: hidden(run.result_value))
        return cls.of(
            run,
            access,
            arguments=arguments and Arguments(args=arguments[0], kwargs=arguments[1]),
            result=result,
            unreadable=problem or other,
        )


def _read(value: Callable[[], Any]) -> tuple[Any, str]:
    """Return a part of a run; None and the reason if it cannot be read."""
    try:
        return value(), ""
    except (UnknownKey, Damaged) as error:
        return None, f"cannot be read ({error})"
    # Raw SQL may have written anything. One such run must not end an export of all.
    except Exception:
        return None, "cannot be read"


class Move(BaseModel):
    """One state in the history of a run."""

    state: State
    at: datetime
    cause: str


class AttemptDetails(BaseModel):
    """One ended attempt."""

    number: int
    token: int
    outcome: str
    worker: UUID | None
    admitted_at: datetime
    started_at: datetime | None
    ended_at: datetime
    error: RunError | None
    traceback: str | None = Field(description="Null for callers that may not see arguments.")

    @classmethod
    def of(cls, attempt: Attempt, run: Run, access: Access) -> AttemptDetails:
        message, traceback = texts_of(attempt, run, access)
        error = RunError(type=attempt.error_type, message=message) if attempt.error_type else None
        own = {"worker": attempt.worker_id, "error": error, "traceback": traceback}
        return cls(**facts_of(cls, attempt, **own))


class WorkerAnswer(BaseModel):
    """Where an attempt was, as its worker answered to `look_run`."""

    attempt: int
    worker: str
    pid: int | None = Field(description="Of the process that ran it.")
    asked_at: datetime
    asked_by: str
    answered_at: datetime
    stack: str = Field(description="Of all threads of its process, that of the task first.")
    problem: str = Field(description="Why there is no stack; empty if there is one.")
    memory_bytes: int | None = Field(description="Null: not known.")
    cpu_seconds: float | None = Field(description="Of its process so far. Null: not known.")


class Timeline(BaseModel):
    """The history of a run, oldest first, and its newest ended attempts."""

    moves: list[Move]
    attempts: list[AttemptDetails]
    answers: list[WorkerAnswer] | None = Field(
        description="The newest 5 answers of its workers to `look_run`. Null for callers that may"
        " not see arguments, and if they cannot be read."
    )
    unanswered: str = Field(
        description="Which worker has not answered to the newest `look_run`; empty if it has."
    )

    @classmethod
    def of(cls, run: Run, attempts: Sequence[Attempt], access: Access) -> Timeline:
        sees = access.sees_arguments(run.owner_id)
        answers, _problem = _read(lambda: answers_of(run)) if sees else (None, "")
        return cls(
            moves=[Move(state=state, at=at, cause=cause) for state, at, cause in run.moves],
            attempts=[AttemptDetails.of(attempt, run, access) for attempt in attempts],
            answers=None if answers is None else [WorkerAnswer(**asdict(one)) for one in answers],
            unanswered=unanswered(run) if sees else "",
        )


class Overridden(BaseModel):
    """The effect of an override."""

    overridden: int = Field(description="Waiting runs that had to obey their windows before.")
    held_by: list[str] = Field(
        description="Shared calendars that still hold some of these runs: only callers that may "
        "operate the whole installation override them."
    )

    @classmethod
    def of(cls, done: Done, held_by: Callable[[], list[str]]) -> Overridden:
        """Return the effect; `held_by` reads what holds the runs if none was overridden."""
        if done.value is None:
            with barrier.lifted():
                return cls(overridden=0, held_by=held_by())
        count, holding = done.value
        return cls(overridden=count, held_by=holding)


class Why(BaseModel):
    """Why a run has not started."""

    state: State
    why: str = Field(description="One sentence; empty once it has started.")
