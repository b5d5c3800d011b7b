"""A schedule in words, and notes on times around a change of the clock."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final
from zoneinfo import ZoneInfo

from cronsim.explain import explain

from jobs.core.errors import ScheduleError
from jobs.core.phrases import Phrase, counted_phrase, forms, joined, phrase, phrase_for
from jobs.core.zones import DAY, spans, zone_names
from jobs.schedules.cron import MINUTE
from jobs.schedules.expressions import field_texts
from jobs.schedules.phases import EPOCH
from jobs.schedules.schedule import Schedule

_SECONDS: Final = forms("every second", "every %(count)s seconds")
_DAYS: Final = {
    "*": phrase("each day"),
    "0": phrase("on Sundays"),
    "1": phrase("on Mondays"),
    "2": phrase("on Tuesdays"),
    "3": phrase("on Wednesdays"),
    "4": phrase("on Thursdays"),
    "5": phrase("on Fridays"),
    "6": phrase("on Saturdays"),
    "7": phrase("on Sundays"),
    "1-5": phrase("from Monday to Friday"),
}
"""The days of usual fields of cron."""


def in_words(schedule: Schedule) -> Phrase:
    """Return a schedule in words; raises ScheduleError for a broken one."""
    zone = _zone(schedule.zone)
    if schedule.kind == "manual":
        return phrase("by hand only")
    if schedule.kind == "once":
        if schedule.once_at is None:
            raise ScheduleError("once_at", "is missing")
        return phrase("once, at %(moment)s", moment=_moment(schedule.once_at, zone))
    if schedule.kind == "interval":
        said: list[str] = [_every(schedule.interval_minutes or 0)]
    elif schedule.kind == "seconds":
        said = [counted_phrase(*_SECONDS, schedule.interval_seconds or 0)]
    else:
        said = [_explained(schedule.cron), zone.key]
    if schedule.start_at is not None:
        said.append(phrase("from %(moment)s", moment=_moment(schedule.start_at, zone)))
    if schedule.end_at is not None:
        said.append(phrase("until %(moment)s", moment=_moment(schedule.end_at, zone)))
    return joined(said, ", ")


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
        return phrase(
            "clocks go from %(before)s to %(here)s; fixed times between run at %(here)s",
            before=f"{before:%H:%M}",
            here=here,
        )
    if span.first <= minute < span.repeated_until:
        return phrase("%(here)s comes twice; this is the second", here=here)
    if moment.astimezone(zone).replace(fold=1).astimezone(UTC) > moment:
        return phrase("%(here)s comes twice; this is the first", here=here)
    return ""


def _zone(name: str) -> ZoneInfo:
    if name and name not in zone_names():
        raise ScheduleError("zone", f"{name[:64]!a} is no IANA time zone")
    return ZoneInfo(name or "UTC")


def _moment(moment: datetime, zone: ZoneInfo) -> str:
    return f"{moment.astimezone(zone):%Y-%m-%d %H:%M} {zone.key}"


def _every(minutes: int) -> Phrase:
    if minutes and minutes % 60 == 0:
        return counted_phrase("every hour", "every %(count)s hours", minutes // 60)
    return counted_phrase("every minute", "every %(count)s minutes", minutes)


def _explained(cron: str) -> Phrase:
    """Return cronsim's words, with the right endings of ordinals above 20.

    cronsim knows English only. Other languages have words for usual expressions, and show others.
    """
    fields = field_texts(cron)
    said = explain(" ".join(fields))
    endings = {"1": "1st", "2": "2nd", "3": "3rd"}
    said = re.sub(r"(?<=[2-9])([123])th\b", lambda match: endings[match[1]], said)
    minute, hour, *days = fields
    if fields[1:] == ["*"] * 4 and re.fullmatch(r"\*/\d+", minute):
        return phrase_for(said, "every %(step)s minutes of an hour", step=int(minute[2:]))
    if days[:2] == ["*", "*"] and minute.isdigit():
        if hour == "*" and days[2] == "*":
            return phrase_for(said, "at minute %(minute)s of every hour", minute=int(minute))
        if hour.isdigit() and days[2] in _DAYS:
            time = f"{int(hour):02}:{int(minute):02}"
            return phrase_for(said, "at %(time)s %(days)s", time=time, days=_DAYS[days[2]])
    return phrase_for(said, "by the cron expression %(cron)s", cron=cron)
