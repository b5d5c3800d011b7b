"""Windows, freezes and decisions in bodies and answers."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated, Any, Final

from ninja import Schema
from pydantic import BeforeValidator, ConfigDict, Field, NaiveDatetime, WithJsonSchema

from jobs.actions.texts import Moment, Reason, Text
from jobs.api.kit.answers import facts_of
from jobs.calendars.reads.window_state import Approval, approval_of
from jobs.calendars.windows import RULE_LIMIT
from jobs.models import Decision, Window, WindowDecision, WindowEffect

LONGEST_SECONDS: Final = 31 * 86_400
DATES_LIMIT: Final = 5_000


def _is_text(value: Any) -> Any:
    # Pydantic would take a number for seconds since 1970, and a date for its midnight.
    if isinstance(value, str) and "T" in value:
        return value
    raise ValueError("is text, such as 2026-01-03T22:00:00")


WallClock = Annotated[
    NaiveDatetime,
    BeforeValidator(_is_text),
    WithJsonSchema(
        {
            "type": "string",
            "pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d)?$",
            "description": "By the clock of `zone`, without an offset: 2026-01-03T22:00:00.",
        }
    ),
]
Duration = Annotated[int, Field(ge=1, le=LONGEST_SECONDS, description="By the clock of `zone`.")]
Dates = Annotated[list[WallClock], Field(max_length=DATES_LIMIT)]
Zone = Annotated[Text, Field(min_length=1, max_length=64, description="An IANA time zone.")]
RuleText = Annotated[
    Text,
    Field(max_length=RULE_LIMIT, description="An RRULE of RFC 5545. Empty: the window is once."),
]


class WindowDetails(Schema):
    """A window or freeze. A window that needs an approval counts only with one."""

    id: int
    calendar: int
    owner: str | None = Field(description="The calendar's; null: it is shared.")
    effect: WindowEffect
    starts: str = Field(description="By the clock of `zone`.")
    duration_seconds: int
    zone: str
    rule: str
    excluded: list[str]
    added: list[str]
    valid_from: datetime | None
    valid_until: datetime | None
    reason: str
    approval: Approval
    revision: int = Field(description="+1 with each change that needs a new approval.")
    requested_by: str | None
    requested_at: datetime
    source: str = Field(description="The iCalendar source; empty: it was made by hand.")

    @classmethod
    def of(cls, window: Window, *, now: datetime) -> WindowDetails:
        """Return a window that was loaded with its calendar, owner, requester and decisions."""
        own = {
            "calendar": window.calendar_id,
            "owner": window.owner.slug if window.owner else None,
            "approval": approval_of(window, now=now),
            "requested_by": window.requester.get_username() if window.requester else None,
        }
        return cls(**facts_of(cls, window, **own))


class WindowChange(Schema):
    """Fields to be changed; those that are left out stay."""

    model_config = ConfigDict(extra="forbid")

    effect: WindowEffect = WindowEffect.WINDOW
    starts: WallClock | None = None
    duration_seconds: Duration = 1
    zone: Zone = "UTC"
    rule: RuleText = ""
    excluded: Dates = []
    added: Dates = []
    valid_from: Moment | None = None
    valid_until: Moment | None = None
    reason: Reason = ""


class WindowToRequest(WindowChange):
    """A new window or freeze."""

    starts: WallClock
    duration_seconds: Duration
    zone: Zone


def fields_of(body: Schema) -> dict[str, Any]:
    """Return the fields of a body that were sent, as the verbs name them."""
    given = body.model_dump(exclude_unset=True)
    if "duration_seconds" in given:
        given["duration"] = timedelta(seconds=given.pop("duration_seconds"))
    return given


class DecisionDetails(Schema):
    """A decision on a window as it was at that revision. The newest counts."""

    id: int
    window: int
    revision: int
    decision: Decision
    occurrence_at: datetime | None = Field(description="Null: all occurrences.")
    expires_at: datetime | None
    by: str
    at: datetime
    reason: str

    @classmethod
    def of(cls, row: WindowDecision) -> DecisionDetails:
        return cls(**facts_of(cls, row, window=row.window_id, by=row.actor_name))
