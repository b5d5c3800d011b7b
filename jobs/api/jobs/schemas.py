"""Jobs, and what belongs to them, in answers."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Self
from uuid import UUID

from pydantic import BaseModel, Field

from jobs.api.jobs.bodies import DueTime
from jobs.api.kit.answers import WITH_BYTES, facts_of
from jobs.core.states import State
from jobs.definitions.present import shown_arguments_of
from jobs.models import Backfill, Job, Missed


class JobSummary(BaseModel):
    """A job in a list."""

    id: int
    owner: str
    key: str
    name: str
    task: str
    queue: str
    target: str | None
    labels: dict[str, str]
    schedule: str = Field(description="manual, once, interval, seconds or cron.")
    interval_minutes: int | None
    interval_seconds: int | None
    cron: str
    once_at: datetime | None
    zone: str
    start_at: datetime | None
    end_at: datetime | None
    smooth: bool
    misfire: str
    misfire_cap: int
    misfire_deadline_seconds: float | None
    overlap: str
    history_policy: str
    priority: int | None = Field(description="Null here and below: the task's, then the setting's.")
    max_attempts: int | None
    backoff_seconds: float | None
    backoff_cap_seconds: float | None
    retry_on: list[str]
    give_up_on: list[str]
    soft_time_limit_seconds: float | None
    time_limit_seconds: float | None
    deadline_seconds: float | None
    lock_key: str
    enabled: bool
    paused_until: datetime | None
    effective_from: datetime = Field(description="Since when its schedule holds.")
    created_at: datetime
    changed_at: datetime

    @classmethod
    def of(cls, job: Job, **more: Any) -> Self:
        """Return a job that was loaded with its owner and target."""
        target = job.target.name if job.target else None
        return cls(**facts_of(cls, job, owner=job.owner.slug, target=target, **more))


class JobDetails(JobSummary):
    """One job."""

    model_config = WITH_BYTES

    arguments: dict[str, Any] | None = Field(
        description="Null for callers that may not see them, and if they cannot be read. Bytes are"
        " in URL-safe base64."
    )

    @classmethod
    def of_job(cls, job: Job, *, with_arguments: bool) -> Self:
        """Return a job; its arguments only if the caller may see them."""
        return cls.of(job, arguments=_readable(job) if with_arguments else None)


def _readable(job: Job) -> dict[str, Any] | None:
    try:
        return shown_arguments_of(job)
    # Raw SQL may have written anything; the other fields are still worth an answer.
    except Exception:
        return None


class Upserts(BaseModel):
    """The numbers of jobs that a bulk has created, updated, and left unchanged."""

    created: int
    updated: int
    unchanged: int


class NextTimes(BaseModel):
    """A job's schedule in words, and its next due times."""

    words: str = Field(description="The schedule in words.")
    zone: str
    paused_until: datetime | None
    problem: str = Field(description="Why there are no times; mostly empty.")
    items: list[DueTime]


class JobResult(BaseModel):
    """A run of a job and its state."""

    id: UUID
    state: State


class JobResults(BaseModel):
    """The last runs of a job, newest first."""

    items: list[JobResult]


class MissedSpan(BaseModel):
    """Consecutive due times of a job that were not run."""

    first_at: datetime
    last_at: datetime
    count: int
    reason: str = Field(description="outage, cap, deadline, overlap, paused or window.")
    created_at: datetime

    @classmethod
    def of(cls, missed: Missed) -> MissedSpan:
        return cls(**facts_of(cls, missed))


class BackfillFacts(BaseModel):
    """The range of a backfill, and how many of its runs are submitted."""

    count: int = Field(description="Due times in the range.")
    made: int = Field(description="Runs that are submitted so far.")
    start: datetime
    end: datetime = Field(description="Not included.")

    @classmethod
    def of(cls, backfill: Backfill, **more: Any) -> Self:
        own = {"start": backfill.start_at, "end": backfill.end_at, **more}
        return cls(**facts_of(cls, backfill, submission=backfill.submission_id, **own))


class BackfillMade(BackfillFacts):
    """A backfill; its runs are those of its submission."""

    id: int | None = Field(description="Null: it was only counted.")
    submission: int | None = Field(description="Cancel this to stop the backfill.")
