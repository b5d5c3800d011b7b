"""A schedule in words, and notes on times around a change of the clock."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from cronsim.explain import explain

from jobs.core.errors import ScheduleError
from jobs.core.zones import DAY, spans, zone_names
from jobs.schedules.cron import MINUTE
from jobs.schedules.expressions import field_texts
from jobs.schedules.phases import EPOCH
from jobs.schedules.schedule import Schedule


def in_words(schedule: Schedule) -> str:
    """Return a schedule in words; raises ScheduleError for a broken one."""
    zone = _zone(schedule.zone)
    if schedule.kind == "manual":
        return "by hand only"
    if schedule.kind == "once":
        if schedule.once_at is None:
            raise ScheduleError("once_at", "is missing")
        return f"once, at {_moment(schedule.once_at, zone)}"
    if schedule.kind == "interval":
        said = _every(schedule.interval_minutes or 0, "minute")
    elif schedule.kind == "seconds":
        said = _every(schedule.interval_seconds or 0, "second")
    else:
        said = f"{_explained(schedule.cron)}, {zone.key}"
    if schedule.start_at is not None:
        said += f", from {_moment(schedule.start_at, zone)}"
    if schedule.end_at is not None:
        said += f", until {_moment(schedule.end_at, zone)}"
    return said


def notes(times: Iterable[datetime], zone: str) -> list[str]:
    """Return for each time a note on what the zone's clock does then, mostly an empty text."""
    place = _zone(zone)
    return [_note(moment, place) for moment in times]


def _note(moment: datetime, zone: ZoneInfo) -> str:
    minute = (moment - EPOCH) // MINUTE
    day = minute // DAY
    [span] = [span for span in spans(zone.key, day) if span.first <= minute < span.end]
    here = f"{moment.astimezone(zone):%H:%M}"
    if minute == span.first and span.skipped:
        before = EPOCH + (minute + span.offset - span.skipped) * MINUTE
        return f"clocks go from {before:%H:%M} to {here}; fixed times between run at {here}"
    if span.first <= minute < span.repeated_until:
        return f"{here} comes twice; this is the second"
    if moment.astimezone(zone).replace(fold=1).astimezone(UTC) > moment:
        return f"{here} comes twice; this is the first"
    return ""


def _zone(name: str) -> ZoneInfo:
    if name and name not in zone_names():
        raise ScheduleError("zone", f"{name[:64]!a} is no IANA time zone")
    return ZoneInfo(name or "UTC")


def _moment(moment: datetime, zone: ZoneInfo) -> str:
    return f"{moment.astimezone(zone):%Y-%m-%d %H:%M} {zone.key}"


def _every(count: int, unit: str) -> str:
    if unit == "minute" and count and count % 60 == 0:
        count, unit = count // 60, "hour"
    return f"every {unit}" if count == 1 else f"every {count:,} {unit}s"


def _explained(cron: str) -> str:
    """Return cronsim's words, with the right endings of ordinals above 20."""
    said = explain(" ".join(field_texts(cron)))
    endings = {"1": "1st", "2": "2nd", "3": "3rd"}
    return re.sub(r"(?<=[2-9])([123])th\b", lambda match: endings[match[1]], said)
