"""An iCalendar file for calendar programs. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from icalendar import Calendar, Event, vDuration

AGAIN: Final = timedelta(minutes=15)
"""How often programs are asked to reload the file; not all of them obey."""


class Status(StrEnum):
    CONFIRMED = "CONFIRMED"
    TENTATIVE = "TENTATIVE"
    CANCELLED = "CANCELLED"


@dataclass(frozen=True, slots=True)
class FeedEntry:
    """One entry from `start` until `end`, both in UTC; `stamp` is the time of its last change."""

    uid: str
    start: datetime
    end: datetime
    summary: str
    description: str
    category: str
    stamp: datetime
    status: Status = Status.CONFIRMED
    is_busy: bool = False


def write(shown: Iterable[FeedEntry], *, name: str) -> bytes:
    """Return the file of a calendar with these entries; equal entries give equal bytes."""
    calendar = Calendar()
    calendar.add("prodid", "-//Fairshift//Service windows//EN")
    calendar.add("version", "2.0")
    calendar.add("method", "PUBLISH")
    calendar.add("name", name)
    calendar.add("x-wr-calname", name)
    calendar.add("refresh-interval", AGAIN, parameters={"VALUE": "DURATION"})
    calendar.add("x-published-ttl", vDuration(AGAIN))
    for one in shown:
        calendar.add_component(_event(one))
    return calendar.to_ical()


def _event(one: FeedEntry) -> Event:
    event = Event()
    event.add("uid", one.uid)
    event.add("dtstamp", one.stamp)
    event.add("dtstart", one.start)
    event.add("dtend", one.end)
    event.add("summary", one.summary)
    if one.description:
        event.add("description", one.description)
    event.add("categories", [one.category])
    event.add("status", one.status.value)
    event.add("transp", "OPAQUE" if one.is_busy else "TRANSPARENT")
    return event
