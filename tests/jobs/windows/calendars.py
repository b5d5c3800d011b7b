"""Calendars made by chance around changes of the clock, and the comparison with the oracle."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from random import Random

from jobs.core.errors import WindowError
from jobs.windows import (
    CalendarHours,
    Effect,
    Entry,
    Span,
    checked,
    closes_at,
    is_open,
    next_opening,
    open_spans,
)
from jobs.windows.rrule import first_two
from tests.jobs.schedules.clocks import ZONES, changes
from tests.judge import window_oracle

MINUTE, DAY = timedelta(minutes=1), timedelta(days=1)
BEFORE, AFTER = timedelta(hours=10), timedelta(hours=16)
DAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")


def some_calendars(chance: Random, change: datetime, zone: str) -> list[CalendarHours]:
    """Return one to three calendars that have something to say about a change of the clock."""
    return [_calendar(chance, change, zone) for _ in range(chance.choice((1, 1, 2, 3)))]


def _calendar(chance: Random, change: datetime, zone: str) -> CalendarHours:
    windows = [
        _entry(chance, change, _zone(chance, zone), Effect.WINDOW)
        for _ in range(chance.choice((0, 1, 1, 2, 3)))
    ]
    freezes = [
        _entry(chance, change, _zone(chance, zone), Effect.FREEZE)
        for _ in range(chance.choice((0, 0, 1, 2)))
    ]
    cut_off = chance.choice((0, 0, 10, 45)) * MINUTE
    return CalendarHours((*windows, *freezes), cut_off=cut_off)


def _zone(chance: Random, zone: str) -> str:
    return chance.choice((zone, zone, zone, "UTC", chance.choice(ZONES)))


def _entry(chance: Random, change: datetime, zone: str, effect: Effect) -> Entry:
    """Return an entry that the limits allow; those that chance made wrong are made again."""
    while True:
        entry = _raw(chance, change, zone, effect)
        try:
            if entry.rule and "HOURLY" not in entry.rule and "MINUTELY" not in entry.rule:
                first = first_two(entry.rule, entry.starts)
                entry = replace(entry, starts=first[0] if first else entry.starts)
            return checked(entry)
        except WindowError:
            continue


def _raw(chance: Random, change: datetime, zone: str, effect: Effect) -> Entry:
    rule = _rule(chance, change) if chance.random() < 0.8 else ""
    far = chance.choice((0, 0, 1, 20, 400)) if rule else 0
    near = change - chance.randrange(-600, 900) * MINUTE - far * DAY
    lengths = (chance.randrange(5, 200), chance.randrange(60, 900), chance.choice((1440, 3000)))
    duration = chance.choices(lengths, (3, 5, 1))[0] * MINUTE
    if rule.startswith("FREQ=HOURLY"):
        duration = min(duration, 60 * MINUTE)
    elif rule.startswith("FREQ=MINUTELY"):
        duration = min(duration, 20 * MINUTE)
    walls = [_wall(change + chance.randrange(-900, 900) * MINUTE, zone) for _ in range(4)]
    starts = _wall(near, zone)
    same_time = [wall.replace(hour=starts.hour, minute=starts.minute) for wall in walls]
    approved, approved_starts = _approval(chance, change)
    return Entry(
        effect=effect,
        starts=starts,
        duration=duration,
        zone=zone,
        rule=rule,
        excluded=tuple(same_time[:2]) if chance.random() < 0.2 else (),
        added=tuple(walls[2:]) if chance.random() < 0.2 else (),
        valid_from=_sometimes(chance, change - chance.randrange(60, 900) * MINUTE),
        valid_until=_sometimes(chance, change + chance.randrange(60, 1500) * MINUTE),
        approved=approved,
        approved_starts=approved_starts,
    )


def _sometimes(chance: Random, moment: datetime) -> datetime | None:
    return moment if chance.random() < 0.15 else None


def _approval(
    chance: Random, change: datetime
) -> tuple[tuple[Span, ...] | None, frozenset[datetime] | None]:
    kind = chance.random()
    if kind < 0.15:
        cut = change + chance.randrange(-300, 300) * MINUTE
        return (Span(cut - 3 * DAY, cut), Span(cut + 2 * 60 * MINUTE, cut + DAY)), None
    if kind < 0.2:
        return None, frozenset(change + n * 30 * MINUTE for n in range(-20, 20))
    return None, None


def _wall(moment: datetime, zone: str) -> datetime:
    """Return what a clock of standard time of about this zone shows, also what it skips."""
    showing = window_oracle.watch(zone, moment - 30 * MINUTE, moment - 29 * MINUTE)
    return showing.walls[0] + 30 * MINUTE


def _rule(chance: Random, change: datetime) -> str:
    pick = chance.choice
    parts = [
        f"FREQ={pick(('DAILY', 'DAILY', 'WEEKLY', 'MONTHLY', 'YEARLY', 'HOURLY', 'MINUTELY'))}"
    ]
    frequency = parts[0].removeprefix("FREQ=")
    if frequency == "MINUTELY":
        parts.append(f"INTERVAL={pick((20, 45, 90, 1439))}")
    elif chance.random() < 0.3:
        parts.append(f"INTERVAL={pick((2, 3))}")
    if frequency in ("DAILY", "WEEKLY", "MONTHLY", "YEARLY"):
        parts += _by(chance, frequency, change)
    end = chance.random()
    if end < 0.15:
        parts.append(f"COUNT={pick((1, 2, 5, 30, 400))}")
    elif end < 0.3:
        until = change + chance.randrange(-600, 1500) * MINUTE
        parts.append(f"UNTIL={until:%Y%m%dT%H%M%S}{pick(('', 'Z'))}")
    return ";".join(parts)


def _by(chance: Random, frequency: str, change: datetime) -> list[str]:
    pick = chance.choice
    days = [(change + n * DAY) for n in (-1, 0, 0, 1)]
    names = sorted({DAYS[day.weekday()] for day in days})
    parts = []
    if frequency in ("DAILY", "WEEKLY") and chance.random() < 0.5:
        parts.append("BYDAY=" + ",".join(chance.sample(names, pick((1, 2, len(names))))))
        if frequency == "WEEKLY":
            parts.append(f"WKST={pick(DAYS)}")
    if frequency in ("MONTHLY", "YEARLY"):
        parts.append(pick((_dates(chance, days), _numbered(chance, frequency, days))))
        if frequency == "YEARLY" or chance.random() < 0.3:
            parts.append(f"BYMONTH={change.month},{change.month % 12 + 1}")
        if frequency == "MONTHLY" and chance.random() < 0.3:
            parts = ["BYDAY=" + ",".join(names), f"BYSETPOS={pick(('1', '-1', '2,-2', '-3'))}"]
    if chance.random() < 0.25:
        parts.append(f"BYHOUR={pick(('1,2,3', '0,2', '22,23', '2'))}")
    if chance.random() < 0.15:
        parts.append(f"BYMINUTE={pick(('0,30', '15', '0,10,50'))}")
    return parts


def _dates(chance: Random, days: list[datetime]) -> str:
    some = {day.day for day in chance.sample(days, 2)} | {chance.choice((-1, -3, 31))}
    return "BYMONTHDAY=" + ",".join(map(str, sorted(some)))


def _numbered(chance: Random, frequency: str, days: list[datetime]) -> str:
    day = chance.choice(days)
    name = DAYS[day.weekday()]
    return f"BYDAY={chance.choice(('-1', str((day.day - 1) // 7 + 1), '2', '-2'))}{name}"


def a_change(chance: Random) -> tuple[str, datetime]:
    """Return a zone and one of its changes."""
    zone = chance.choice(ZONES)
    return zone, chance.choice(changes(zone))


def disagreements(calendars: list[CalendarHours], change: datetime) -> list[str]:
    """Return what differs from the oracle around a change of the clock; mostly nothing.

    Compared are all minutes, and at some of them the fit rule and the end of the opening.
    """
    start, end = change - BEFORE, change + AFTER
    wanted = window_oracle.open_minutes(
        [calendar.entries for calendar in calendars], start=start, end=end
    )
    found = [False] * len(wanted)
    for span in open_spans(calendars, start=start, end=end):
        if span.start.second or span.end.second or span.start.tzinfo is not UTC:
            return [f"{span} is not in whole minutes of UTC"]
        first, last = (span.start - start) // MINUTE, (span.end - start) // MINUTE
        found[first:last] = [True] * (last - first)
    if found != wanted:
        index = next(
            i for i, pair in enumerate(zip(found, wanted, strict=True)) if len({*pair}) > 1
        )
        return [f"{start + index * MINUTE}: {found[index]}, {calendars}"]
    return list(_fits(calendars, wanted, start))


def _fits(calendars: list[CalendarHours], wanted: list[bool], start: datetime) -> list[str]:
    """Compare what the fit rule says with the lengths of the oracle's runs of open minutes."""
    cut_off = max((calendar.cut_off for calendar in calendars), default=0 * MINUTE)
    wrong = []
    lengths = [0] * (len(wanted) + 1)
    for index in reversed(range(len(wanted))):
        lengths[index] = lengths[index + 1] + 1 if wanted[index] else 0
    for index in range(0, len(wanted), 197):
        at = start + index * MINUTE
        if index + lengths[index] == len(wanted):
            continue  # what comes after is not known here
        closes = at + lengths[index] * MINUTE
        if closes_at(calendars, at=at) != closes:
            wrong.append(f"closes_at {at}: {calendars}")
        for needed in (0, 1, 30, 119, 600):
            fits = wanted[index] and at + needed * MINUTE <= closes - cut_off
            if is_open(calendars, at=at, needed=needed * MINUTE) != fits:
                wrong.append(f"is_open {at} for {needed}: {calendars}")
            wrong += _next(calendars, lengths, start, index, needed * MINUTE)
    return wrong


def _next(
    calendars: list[CalendarHours],
    lengths: list[int],
    start: datetime,
    index: int,
    needed: timedelta,
) -> list[str]:
    """Compare the next opening, if the oracle has seen it whole."""
    enough = needed + max((calendar.cut_off for calendar in calendars), default=0 * MINUTE)
    least = max(1, enough // MINUTE)
    first = next((i for i in range(index, len(lengths)) if lengths[i] >= least), None)
    if first is None or first + lengths[first] == len(lengths) - 1:
        return []
    after = start + index * MINUTE
    span = next_opening(calendars, after=after, needed=needed)
    wanted = Span(start + first * MINUTE, start + (first + lengths[first]) * MINUTE)
    return [] if span == wanted else [f"next_opening {after}, {needed}: {span}, {calendars}"]
