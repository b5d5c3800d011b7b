"""The wall times of a rule that is daily or slower, with dateutil.

dateutil expands only periods (years, months, weeks, days) near the requested span, so that an old
rule costs no more than a new one. It gets no COUNT and no UNTIL: `wall_starts` applies them.
"""

from __future__ import annotations

from calendar import isleap
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from itertools import dropwhile, islice, takewhile
from typing import Any, Final

from dateutil import rrule

from jobs.core.errors import WindowError
from jobs.windows.rules import Rule, read_rule

LAST: Final = datetime(2100, 1, 1)
"""The end of all searches; until then the calendar repeats every 28 years."""
FIRST_MOMENT: Final = datetime(1970, 1, 1, tzinfo=UTC)
LAST_MOMENT: Final = LAST.replace(tzinfo=UTC)
_FREQUENCIES: Final = {
    "YEARLY": rrule.YEARLY,
    "MONTHLY": rrule.MONTHLY,
    "WEEKLY": rrule.WEEKLY,
    "DAILY": rrule.DAILY,
}


def wall_starts(
    text: str, starts: datetime, *, first: datetime, last: datetime
) -> Iterator[datetime]:
    """Yield the wall times of the starts of a rule, `first <= time < last`, in order.

    COUNT and an UNTIL by the clock are applied; an UNTIL in UTC is not. Raises WindowError for a
    rule with fewer than two occurrences within eight years.
    """
    rule = read_rule(text)
    if len(first_two(text, starts)) < 2:
        raise WindowError("rule", "does not come twice within eight years")
    last = min(last, LAST)
    if rule.count is not None:
        last = min(last, counted_end(text, starts))
    if rule.until is not None and rule.until.tzinfo is None:
        last = min(last, rule.until + timedelta(microseconds=1))
    first = max(first, starts)
    if first >= last:
        return
    found = dropwhile(lambda wall: wall < first, _expansion(rule, starts, first))
    yield from takewhile(lambda wall: wall < last, found)


@lru_cache(maxsize=4096)
def counted_end(text: str, starts: datetime) -> datetime:
    """Return the end of a rule with COUNT: right after its last occurrence."""
    rule = read_rule(text)
    found = dropwhile(lambda wall: wall < starts, _expansion(rule, starts, starts))
    walls = takewhile(lambda wall: wall < LAST, islice(found, rule.count))
    return max(walls, default=starts) + timedelta(microseconds=1)


@lru_cache(maxsize=4096)
def first_two(text: str, starts: datetime) -> tuple[datetime, ...]:
    """Return the first two times from `starts` on, or fewer if there are not two within 8 years.

    The search is in a late year with the same calendar: if a rule has no date, dateutil searches
    until the last year that Python knows.
    """
    rule = read_rule(text)
    twin = next((year for year in range(9_964, 9_992) if _is_twin(year, starts.year)), None)
    if twin is None:
        raise WindowError("starts", "is outside 1970 to 2099")
    years = twin - starts.year
    moved = starts.replace(year=twin)
    found = dropwhile(lambda wall: wall < moved, _expansion(rule, moved, moved))
    near = takewhile(lambda wall: wall.year - twin <= 8, islice(found, 2))
    return tuple(wall.replace(year=wall.year - years) for wall in near)


def _is_twin(year: int, other: int) -> bool:
    return (
        date(year, 1, 1).weekday() == date(other, 1, 1).weekday()
        and year % 4 == other % 4
        and isleap(year) == isleap(other)
    )


def _expansion(rule: Rule, starts: datetime, near: datetime) -> Iterator[datetime]:
    """Return all times from the begin of the rule's last period before `near`."""
    begin = datetime.combine(_period(rule, starts.date(), near.date()), time.min)
    return iter(
        rrule.rrule(
            _FREQUENCIES[rule.frequency],
            dtstart=begin,
            interval=rule.interval,
            wkst=rule.week_start,
            **_by(rule, starts),
        )
    )


def _by(rule: Rule, starts: datetime) -> dict[str, Any]:
    """Return the BY parts, completed from the first occurrence."""
    by = {"byhour": starts.hour, "byminute": starts.minute, "bysecond": starts.second, **rule.by}
    if not by.keys() & {"byweekno", "byyearday", "bymonthday", "byweekday"}:
        if rule.frequency == "WEEKLY":
            by["byweekday"] = starts.weekday()
        elif rule.frequency != "DAILY":
            by["bymonthday"] = starts.day
            if rule.frequency == "YEARLY":
                by.setdefault("bymonth", starts.month)
    return by


def _period(rule: Rule, starts: date, near: date) -> date:
    """Return the first day of the rule's period that contains `near`, or of the last one before."""
    near = max(starts, near)
    if rule.frequency == "YEARLY":
        years = (near.year - starts.year) // rule.interval * rule.interval
        return date(starts.year + years, 1, 1)
    if rule.frequency == "MONTHLY":
        month = starts.year * 12 + starts.month - 1
        month += (near.year * 12 + near.month - 1 - month) // rule.interval * rule.interval
        return date(month // 12, month % 12 + 1, 1)
    days = rule.interval
    first = starts
    if rule.frequency == "WEEKLY":
        days *= 7
        first -= timedelta(days=(starts.weekday() - rule.week_start) % 7)
    return first + (near - first) // timedelta(days=days) * timedelta(days=days)
