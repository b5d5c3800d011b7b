"""Submissions and forecasts in answers."""

from __future__ import annotations

import math
from datetime import datetime
from typing import Any

from ninja import Schema
from pydantic import Field

from jobs.api.kit.answers import facts_of
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

    @classmethod
    def of(cls, submission: Submission, **more: Any) -> SubmissionMade:
        """Return a submission that was loaded with its owner."""
        return cls(**facts_of(cls, submission, owner=submission.owner.slug, **more))


class SubmissionStored(SubmissionMade):
    """A submission that is stored now, or was by an earlier request with its key."""

    waves: list[int] = Field(description="The number of runs of each wave; empty: no waves.")

    @classmethod
    def of_stored(cls, submission: Submission) -> SubmissionMade:
        found = Rollout.objects.filter(pk=submission.pk).values_list("waves", flat=True).first()
        return cls.of(submission, waves=[wave["size"] for wave in found or ()])


class RunProgress(Schema):
    """The numbers of a submission's runs by state."""

    total: int
    ended: int
    is_done: bool = Field(description="Every run has ended, and no backfill submits more.")
    states: dict[State, int] = Field(description="Without states that no run has.")

    @classmethod
    def of(cls, progress: Progress) -> RunProgress:
        return cls(**facts_of(cls, progress, states=progress.counts))


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
        waves = [WaveDetails(**wave) for wave in rollout.waves]
        next_at = rollout.next_at if rollout.state == RolloutState.WAITING else None
        return cls(**facts_of(cls, rollout, waves=waves, next_at=next_at))


class SubmissionDetails(SubmissionMade):
    """One submission, with its progress."""

    progress: RunProgress
    rollout: RolloutDetails | None = Field(description="Null: it has no waves.")

    @classmethod
    def of_progress(
        cls, submission: Submission, progress: Progress, rollout: Rollout | None
    ) -> SubmissionMade:
        waves = None if rollout is None else RolloutDetails.of(rollout)
        return cls.of(submission, progress=RunProgress.of(progress), rollout=waves)


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
        openings = [
            RunsInOpening(
                opens_at=done.opening.start if done.opening else None,
                closes_at=done.opening.end if done.opening else None,
                count=done.count,
            )
            for done in found.done
        ]
        seconds = found.open_seconds if math.isfinite(found.open_seconds) else None
        targets = {name: list(few) for name, few in found.names.items() if few}
        own = {"openings": openings, "open_seconds": seconds, "targets": targets}
        return cls(**facts_of(cls, found, **own))


class RestForecast(Schema):
    """A forecast of the waiting runs of a submission."""

    forecast: RunsForecast | None = Field(description="Null: no run waits.")
