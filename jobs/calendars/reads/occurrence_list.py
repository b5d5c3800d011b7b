"""The next occurrences of a window for pages: by two clocks, with notes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Final
from zoneinfo import ZoneInfo

from django.utils import timezone

from jobs.core.phrases import joined, phrase, short_day
from jobs.windows import Entry, Span, in_words, notes
from jobs.windows.occurrences import FARTHEST, all_occurrences, is_approved
from jobs.windows.words import length_in_words

NEXT: Final = 10
DAYS_OF_A_WEEK: Final = 6
"""Most days after which the name of a weekday is unambiguous."""
# A rule in minutes has half a million occurrences in a year: the first look is short.
_LOOKS: Final = (timedelta(days=2), timedelta(days=31), timedelta(days=366), timedelta(days=2_922))


@dataclass(frozen=True, slots=True)
class Counted:
    """The valid part of an occurrence; `start` is that of the whole one, which approvals name."""

    span: Span
    start: datetime
    counts: bool


@dataclass(frozen=True, slots=True)
class Occurrence:
    """An occurrence by two clocks; `there` is empty when they are the same."""

    here: str
    there: str
    note: str
    at: datetime
    length: str = ""
    counts: bool = True


@dataclass(frozen=True, slots=True)
class Timetable:
    """A window or schedule in words and its next occurrences, or the problem that it has."""

    words: str
    occurrences: Sequence[Occurrence] = ()
    zone: str = ""
    reader_zone: str = ""
    remark: str = ""
    not_before: datetime | None = None
    """The end of a pause: before it, a job is not due."""
    problem: str = ""

    @property
    def has_two_clocks(self) -> bool:
        return self.zone != self.reader_zone

    @property
    def has_notes(self) -> bool:
        return any(each.note for each in self.occurrences)


def overlapping(entry: Entry, *, start: datetime, end: datetime) -> Iterator[Counted]:
    """Yield all occurrences that overlap a span, approved or not."""
    earliest = start - entry.duration - FARTHEST
    for _wall, whole in all_occurrences(entry, start=earliest, end=end):
        span = whole.clip(start=entry.valid_from, end=entry.valid_until)
        if span.start < span.end and span.end > start and span.start < end:
            yield Counted(span, whole.start, is_approved(entry, whole.start))


def next_occurrences(entry: Entry, *, after: datetime, count: int = NEXT) -> list[Counted]:
    """Return the occurrences that end after a moment, up to eight years ahead."""
    found: list[Counted] = []
    for ahead in _LOOKS:
        found = list(islice(overlapping(entry, start=after, end=after + ahead), count))
        if len(found) >= count:
            break
    return found


def named_occurrences(entry: Entry, *, after: datetime, count: int) -> list[tuple[str, str]]:
    """Return the next occurrences as choices: the start in UTC, which a decision names, and words.

    The start is that of the whole occurrence, of which a part may be valid.
    """
    zone = ZoneInfo(entry.zone)
    found = next_occurrences(entry, after=after, count=count)
    return [(one.start.astimezone(UTC).isoformat(), clock(one.span, zone)) for one in found]


def times_of(entry: Entry, *, after: datetime) -> Timetable:
    """Return a window in words, and its next occurrences by its own and the reader's clock."""
    reader = timezone.get_current_timezone_name()
    here, there = ZoneInfo(entry.zone), timezone.get_current_timezone()
    return Timetable(
        words=in_words(entry),
        occurrences=[
            Occurrence(
                here=clock(one.span, here),
                there=clock(one.span, there) if entry.zone != reader else "",
                length=length_in_words(one.span.length),
                note=notes(entry, one.span),
                at=one.span.start,
                counts=one.counts,
            )
            for one in next_occurrences(entry, after=after)
        ],
        zone=entry.zone,
        reader_zone=reader,
    )


def clock(span: Span, zone: object) -> str:
    """Return a span by a clock, with the date of its end only where it is needed."""
    start, end = (at.astimezone(zone) for at in (span.start, span.end))  # type: ignore[arg-type]
    seconds = any(at.astimezone(UTC).second for at in (span.start, span.end))
    time = "%H:%M:%S" if seconds else "%H:%M"
    days = (end.date() - start.date()).days
    until = [f"{end:{time}}"] if not days else [short_day(end), f"{end:{time}}"]
    if days > DAYS_OF_A_WEEK:
        until = [short_day(end), f"{end:%Y-%m-%d {time}}"]
    zones = f"{start:%Z}"
    if start.tzname() != end.tzname():
        zones = phrase("%(first)s to %(last)s", first=zones, last=f"{end:%Z}")
    first = [short_day(start), f"{start:%Y-%m-%d {time}}"]
    return joined([*first, "–", *until, zones], " ")
