"""Calendars in bodies and answers."""

from __future__ import annotations

from datetime import datetime

from ninja import Schema
from pydantic import Field

from jobs.calendars.options import shown
from jobs.models import Calendar
from jobs.models.calendar import EndBehaviour


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


class Feed(Schema):
    """The secret address of a feed."""

    address: str = Field(description="It is shown only now.")
