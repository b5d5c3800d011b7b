"""The checks of a window or freeze: one refusal for each field, with its limit."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any, Final

from jobs.core.errors import WindowError
from jobs.core.zones import moment_problem, shown, zone_problem
from jobs.windows.entries import Effect, Entry, Span
from jobs.windows.occurrences import span_of, step_of
from jobs.windows.rrule import FIRST_MOMENT, LAST, LAST_MOMENT, first_two, wall_starts
from jobs.windows.rules import SUB_DAILY, Rule, normal_text, read_rule
from jobs.windows.wall_clock import moment_at

SHORTEST: Final = timedelta(seconds=1)
LONGEST: Final = timedelta(days=31)
MOST_DATES: Final = 5_000
"""The limit of `excluded`, of `added`, and of approvals."""
LONGEST_REASON: Final = 1_000
_EARLIEST: Final = datetime(1970, 1, 1)


def checked(entry: Entry) -> Entry:
    """Return the entry as it is stored; raises WindowError naming the field and the limit.

    Moments are in UTC, dates in order, the rule is in its stored form, an empty zone becomes UTC.
    The first occurrence must be one of the rule. Checking twice changes nothing.
    """
    if not isinstance(entry.effect, Effect):
        raise WindowError("effect", f"is one of {', '.join(Effect)}, not {shown(entry.effect)}")
    if problem := zone_problem(entry.zone):
        raise WindowError("zone", problem)
    starts = _wall(entry.starts, "starts")
    _check_duration(entry.duration)
    if not isinstance(entry.reason, str) or len(entry.reason) > LONGEST_REASON:
        raise WindowError("reason", f"is text of up to {LONGEST_REASON:,} characters")
    valid_from = _moment(entry.valid_from, "valid_from")
    valid_until = _moment(entry.valid_until, "valid_until")
    if valid_from is not None and valid_until is not None and valid_until <= valid_from:
        raise WindowError("valid_until", "must be later than valid_from")
    entry = replace(
        entry,
        starts=starts,
        zone=entry.zone or "UTC",
        rule=normal_text(entry.rule),
        excluded=_dates(entry.excluded, "excluded"),
        added=_dates(entry.added, "added"),
        valid_from=valid_from,
        valid_until=valid_until,
        approved=_approved(entry.approved),
        approved_starts=_approved_starts(entry.approved_starts),
    )
    if entry.rule:
        _check_rule(entry, read_rule(entry.rule))
    _check_something_is_left(entry)
    return entry


def _check_rule(entry: Entry, rule: Rule) -> None:
    starts = entry.starts
    if starts.microsecond:
        raise WindowError("starts", "has fractions of a second, which no rule has")
    until = rule.until
    if until is not None and until < (moment_at(starts, entry.zone) if until.tzinfo else starts):
        raise WindowError("rule", "has an UNTIL before the first occurrence")
    if rule.frequency in SUB_DAILY:
        if entry.duration > step_of(rule):
            problem = f"is longer than from one start to the next, {step_of(rule)}"
            raise WindowError("duration", problem)
        return
    found = first_two(entry.rule, starts)
    if not found:
        raise WindowError("rule", "means no date within eight years of its first occurrence")
    if found[0] != starts:
        first = f"{found[0]:%Y-%m-%d %H:%M:%S}"
        problem = f"is no occurrence of the rule; the first one from then on is {first}"
        raise WindowError("starts", problem)
    if len(found) < 2:
        raise WindowError("rule", "does not come again within eight years; make it a one-off")


def _check_something_is_left(entry: Entry) -> None:
    """Refuse an entry without any occurrence: excluded, or skipped by the clock."""
    rule = read_rule(entry.rule) if entry.rule else None
    if rule is not None and rule.frequency in SUB_DAILY:
        return
    left = set(entry.added).difference(entry.excluded)
    if rule is None:
        left |= {entry.starts}.difference(entry.excluded)
    elif not left:
        some = wall_starts(entry.rule, entry.starts, first=entry.starts, last=LAST)
        excluded = set(entry.excluded)
        found = (wall for wall in islice(some, MOST_DATES + 1) if wall not in excluded)
        left.update(islice(found, 1))
        if not left and rule.count is None and rule.until is None:
            return
    if not left:
        raise WindowError("excluded", "leaves no occurrence")
    if rule is None and all(span_of(entry, wall).length <= timedelta(0) for wall in left):
        problem = f"lies in a gap of the clock of {entry.zone}, which skips all of the duration"
        raise WindowError("starts", problem)


def _check_duration(duration: Any) -> None:
    if not isinstance(duration, timedelta):
        raise WindowError("duration", f"is a timedelta, not {type(duration).__name__}")
    if not SHORTEST <= duration <= LONGEST:
        raise WindowError("duration", "is from 1 second to 31 days")


def _wall(value: Any, field: str) -> datetime:
    """Return a wall time; of one that the clock shows twice, the first."""
    if not isinstance(value, datetime):
        raise WindowError(field, f"is a datetime, not {type(value).__name__}")
    if value.tzinfo is not None:
        raise WindowError(field, "has a time zone; give what the clock of `zone` shows")
    if not _EARLIEST <= value < LAST:
        raise WindowError(field, "is outside 1970 to 2099")
    return value.replace(fold=0)


def _moment(value: Any, field: str) -> datetime | None:
    if value is None:
        return None
    if problem := moment_problem(value, first=FIRST_MOMENT, end=LAST_MOMENT):
        raise WindowError(field, problem)
    moment: datetime = value.astimezone(UTC)
    return moment


def _dates(values: Any, field: str) -> tuple[datetime, ...]:
    return tuple(sorted({_wall(value, field) for value in _limited(values, field)}))


def _limited(values: Any, field: str) -> Any:
    if not isinstance(values, (tuple, list, set, frozenset)):
        raise WindowError(field, f"is a tuple, not {type(values).__name__}")
    if len(values) > MOST_DATES:
        raise WindowError(field, f"has {len(values):,} elements, the limit is {MOST_DATES:,}")
    return values


def _approved(values: Any) -> tuple[Span, ...] | None:
    if values is None:
        return None
    spans = []
    for value in _limited(values, "approved"):
        if not isinstance(value, Span):
            raise WindowError("approved", f"has a {type(value).__name__}; it takes Spans")
        start, end = _moment(value.start, "approved"), _moment(value.end, "approved")
        if start is None or end is None or end <= start:
            raise WindowError("approved", "has a span that does not end after its start")
        spans.append(Span(start, end))
    return tuple(sorted(spans, key=lambda span: span.start))


def _approved_starts(values: Any) -> frozenset[datetime] | None:
    if values is None:
        return None
    moments = (_moment(value, "approved_starts") for value in _limited(values, "approved_starts"))
    return frozenset(moment for moment in moments if moment is not None)
