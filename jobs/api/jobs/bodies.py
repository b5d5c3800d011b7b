"""Jobs, and actions on them, in bodies."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from jobs.actions.texts import Key, Moment, Name, Slug, TaskName, Text
from jobs.catalog.policies import MONTH_SECONDS, NAMES_LIMIT
from jobs.core.inputs import LABELS_LIMIT
from jobs.definitions.fields import CAP_LIMIT
from jobs.models import HistoryPolicy, MisfirePolicy, OverlapPolicy, ScheduleKind
from jobs.schedules.expressions import LONGEST
from jobs.schedules.limits import LONGEST_MINUTES, LONGEST_SECONDS

Seconds = Annotated[float, Field(ge=0.1, le=MONTH_SECONDS)]
BackOff = Annotated[float, Field(ge=0, le=MONTH_SECONDS)]
ErrorNames = Annotated[list[Name], Field(max_length=NAMES_LIMIT)]


class JobFields(BaseModel):
    """The fields of a job; one that is missing or null has its default."""

    model_config = ConfigDict(extra="forbid", use_enum_values=True)

    name: Name | None = None
    arguments: dict[str, Any] | None = Field(None, description="The task's arguments, by name.")
    target: Name | None = None
    labels: Annotated[dict[Name, Name], Field(max_length=LABELS_LIMIT)] | None = None
    schedule: ScheduleKind | None = Field(
        None, description="May be left out: the field of the kind that is given decides."
    )
    interval_minutes: int | None = Field(None, ge=1, le=LONGEST_MINUTES)
    interval_seconds: int | None = Field(
        None, ge=1, le=LONGEST_SECONDS, description="No whole minutes: give these as minutes."
    )
    cron: Annotated[Text, Field(max_length=LONGEST)] | None = Field(
        None, description="Five fields, or an alias such as @daily."
    )
    once_at: Moment | None = None
    zone: Annotated[Text, Field(max_length=64)] | None = Field(
        None, description="An IANA name; null: UTC."
    )
    start_at: Moment | None = Field(None, description="Not due before.")
    end_at: Moment | None = Field(None, description="Not due after.")
    smooth: bool | None = Field(None, description="Spread the starts over the minute.")
    misfire: MisfirePolicy | None = Field(None, description="What happens to missed due times.")
    misfire_cap: int | None = Field(None, ge=1, le=CAP_LIMIT)
    misfire_deadline_seconds: Seconds | None = None
    overlap: OverlapPolicy | None = None
    history_policy: HistoryPolicy | None = None
    queue: Annotated[Text, Field(max_length=100)] | None = None
    priority: int | None = Field(None, ge=0, le=9, description="Higher first.")
    max_attempts: int | None = Field(None, ge=1, le=100)
    backoff_seconds: BackOff | None = None
    backoff_cap_seconds: BackOff | None = None
    retry_on: ErrorNames | None = Field(None, description="Names of exceptions; null: all.")
    give_up_on: ErrorNames | None = Field(None, description="No further attempt after these.")
    soft_time_limit_seconds: Seconds | None = None
    time_limit_seconds: Seconds | None = None
    deadline_seconds: Seconds | None = Field(None, description="Start within, else expire.")
    lock_key: Name | None = Field(
        None, description="Runs of the owner with the same key do not overlap."
    )
    enabled: bool | None = None

    @property
    def given(self) -> dict[str, Any]:
        """The fields that the caller has sent."""
        return self.model_dump(exclude_unset=True)


class JobToReplace(JobFields):
    """All fields of a job but its key and its owner, which stay."""

    task: TaskName


class JobChange(JobFields):
    """The fields of a job that change."""

    task: TaskName | None = None


class JobToUpsert(JobToReplace):
    """One job of a bulk."""

    key: Key = Field(description="The caller's own id of the job.")


class JobToCreate(JobToUpsert):
    """A new job."""

    owner: Slug | None = Field(None, description="Needed by callers with several owners.")


class JobsToUpsert(BaseModel):
    """Jobs to make or change by their keys: all, or none."""

    model_config = ConfigDict(extra="forbid")

    owner: Slug | None = Field(None, description="Needed by callers with several owners.")
    # Each element is a JobToUpsert. They are checked in `bulk`, which reports all wrong ones.
    jobs: list[Any] = Field(min_length=1)


class DueTime(BaseModel):
    """One due time."""

    at: datetime
    local: datetime = Field(description="The same moment, with the offset of the job's zone.")
    note: str = Field(description="What the zone's clock does then; mostly empty.")
