"""Calendars in bodies and answers."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from ninja import Schema
from pydantic import ConfigDict, Field

from jobs.actions.texts import Slug, Text
from jobs.calendars.options import shown
from jobs.models import Calendar
from jobs.models.calendar import CUT_OFF_LIMIT, SPREAD_LIMIT, EndBehaviour

CalendarName = Annotated[Text, Field(min_length=1, max_length=200, pattern=r"\S")]
CutOff = Annotated[
    int,
    Field(
        ge=0, le=CUT_OFF_LIMIT, description="In this many seconds before the close no run starts."
    ),
]
Spread = Annotated[
    int,
    Field(
        ge=0,
        le=SPREAD_LIMIT,
        description="Starts of runs that waited are spread over this many seconds.",
    ),
]


class CalendarDetails(Schema):
    """A calendar: a set of windows and freezes."""

    id: int
    owner: str | None = Field(description="Null: shared, and may apply to all owners.")
    name: str
    cut_off_seconds: int
    end: EndBehaviour = Field(description="What happens to active runs when it closes.")
    spread_seconds: int
    needs_approval: bool = Field(description="Its windows count only when they are approved.")
    four_eyes: bool = Field(description="The caller that requested a window may not approve it.")
    created_at: datetime

    @classmethod
    def of(cls, calendar: Calendar) -> CalendarDetails:
        return cls(
            id=calendar.pk,
            owner=calendar.owner.slug if calendar.owner else None,
            created_at=calendar.created_at,
            **shown(calendar),
        )


class CalendarToCreate(Schema):
    """A new calendar. Without a window it is always open."""

    model_config = ConfigDict(extra="forbid")

    name: CalendarName
    owner: Slug | None = Field(None, description="Needed by callers with several owners.")
    is_shared: bool = Field(
        False, description="For all owners; only callers with `admin` for all owners create these."
    )
    cut_off_seconds: CutOff = 0
    end: EndBehaviour = EndBehaviour.LET_RUN
    spread_seconds: Spread = 0
    needs_approval: bool = True
    four_eyes: bool = True


class CalendarChange(Schema):
    """Options to be changed; those that are left out stay."""

    model_config = ConfigDict(extra="forbid")

    name: CalendarName = ""
    cut_off_seconds: CutOff = 0
    end: EndBehaviour = EndBehaviour.LET_RUN
    spread_seconds: Spread = 0
    needs_approval: bool = True
    four_eyes: bool = True
