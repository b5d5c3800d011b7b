"""Submissions and forecasts in answers."""

from __future__ import annotations

import math
from datetime import datetime
from typing import Any

from ninja import Schema
from pydantic import Field

from jobs.core.states import State
from jobs.forecast.estimate import Forecast
from jobs.models import Rollout, RolloutState, Submission
from jobs.models.submission import Progress


class SubmissionMade(Schema):
    """A submission."""

    id: int
    owner: str
    label: str
    task: str
    queue: str
    run_count: int
    created_at: datetime

    @staticmethod
    def facts(submission: Submission) -> dict[str, Any]:
        """Return the fields of a submission that was loaded with its owner."""
        return {
            "id": submission.pk,
            "owner": submission.owner.slug,
            "label": submission.label,
            "task": submission.task,
            "queue": submission.queue,
            "run_count": submission.run_count,
            "created_at": submission.created_at,
        }

    @classmethod
    def of(cls, submission: Submission) -> SubmissionMade:
        return cls(**cls.facts(submission))


class RunProgress(Schema):
    """The numbers of a submission's runs by state."""

    total: int
    ended: int
    is_done: bool = Field(description="Every run has ended, and no backfill submits more.")
    states: dict[State, int] = Field(description="Without states that no run has.")

    @classmethod
    def of(cls, progress: Progress) -> RunProgress:
        return cls(
            total=progress.total,
            ended=progress.ended,
            is_done=progress.is_done,
            states=progress.counts,
        )


class WaveDetails(Schema):
    """One wave."""

    size: int
    released_at: datetime | None = None
    released_by: str = Field("", description="Empty: by the rollout itself.")
    ended_at: datetime | None = None


class RolloutDetails(Schema):
    """The waves of a submission."""

    state: RolloutState
    wave: int = Field(description="The newest released one, from 1.")
    waves: list[WaveDetails]
    stop_at: str = Field(description="More failed runs of a wave stop the rollout; empty: never.")
    between_seconds: int | None
    needs_approval: bool
    next_at: datetime | None = Field(description="When the next wave is released.")
    reason: str = Field(description="Why it is stopped.")

    @classmethod
    def of(cls, rollout: Rollout) -> RolloutDetails:
        names = [name for name in cls.model_fields if name != "waves"]
        return cls(
            **{name: getattr(rollout, name) for name in names},
            waves=[WaveDetails(**wave) for wave in rollout.waves],
        )


class SubmissionDetails(SubmissionMade):
    """One submission, with its progress."""

    progress: RunProgress
    rollout: RolloutDetails | None = Field(description="Null: it has no waves.")

    @classmethod
    def of_progress(cls, submission: Submission, progress: Progress) -> SubmissionDetails:
        found = Rollout.objects.filter(pk=submission.pk).first()
        return cls(
            **cls.facts(submission),
            progress=RunProgress.of(progress),
            rollout=None if found is None else RolloutDetails.of(found),
        )


class RunsInOpening(Schema):
    """The number of runs that start in one opening; without times: runs without a calendar."""

    opens_at: datetime | None
    closes_at: datetime | None
    count: int


class RunsForecast(Schema):
    """An estimate of how runs will go, from what waits now and how long runs took."""

    count: int
    starts_at: datetime | None
    finishes_at: datetime | None = Field(
        description="Null: not all end within a year, or waves wait for an approval."
    )
    ends_at: datetime | None = Field(description="When the last of those ends that do.")
    earliest_at: datetime | None = Field(
        description="Between this time and `latest_at` all end, as far as run times and slots were"
        " measured. Null: they were not."
    )
    latest_at: datetime | None
    openings: list[RunsInOpening]
    left_over: int = Field(description="Not started in the first openings.")
    next_opening: datetime | None = Field(description="When these may start.")
    never: int = Field(description="No opening within a year is long enough for them.")
    unapproved: int = Field(description="Those of `never` that wait for an approval only.")
    expired: int = Field(description="They do not start before their deadline.")
    awaiting: int = Field(
        description="Runs of waves that wait for an approval: they are in no other number."
    )
    without_calendar: int
    share: float = Field(description="Their part of the slots when the first one starts.")
    needed_seconds: float = Field(description="Worker seconds that they need.")
    open_seconds: float | None = Field(
        description="Worker seconds of the first openings; null: no calendar limits them."
    )
    warnings: list[str]
    targets: dict[str, list[str]] = Field(
        description="The first targets of `never`, `unapproved` and `without_calendar`."
    )

    @classmethod
    def of(cls, found: Forecast) -> RunsForecast:
        names = (
            *("count", "starts_at", "finishes_at", "ends_at", "left_over", "next_opening"),
            *("earliest_at", "latest_at"),
            *("never", "unapproved", "expired", "awaiting", "without_calendar"),
            *("share", "needed_seconds"),
        )
        return cls(
            **{name: getattr(found, name) for name in names},
            openings=[
                RunsInOpening(
                    opens_at=done.opening.start if done.opening else None,
                    closes_at=done.opening.end if done.opening else None,
                    count=done.count,
                )
                for done in found.done
            ],
            open_seconds=found.open_seconds if math.isfinite(found.open_seconds) else None,
            warnings=list(found.warnings),
            targets={name: list(few) for name, few in found.names.items() if few},
        )


class RestForecast(Schema):
    """A forecast of the waiting runs of a submission."""

    forecast: RunsForecast | None = Field(description="Null: no run waits.")
