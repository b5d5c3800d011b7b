"""A cron expression's text: five fields, aliases, and what is wrong with one."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Final

from cronsim import CronSim, CronSimError
from cronsim.cronsim import Field

from jobs.core.errors import ScheduleError

LONGEST: Final = 200
"""Characters of an expression; its column has the same limit."""
MOST_TERMS: Final = 60
"""Terms of one field, between commas."""

ALIASES: Final = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}

# Of each field: its name, cronsim's reader, its limits in words, and how many values it has.
_FIELDS: Final = (
    ("minute", Field.MINUTE, "0-59", 60),
    ("hour", Field.HOUR, "0-23", 24),
    ("day of month", Field.DAY, "1-31, L or LW", 31),
    ("month", Field.MONTH, "1-12 or JAN-DEC", 12),
    ("day of week", Field.DOW, "0-7 or SUN-SAT (0 and 7 are Sunday), 5L or 5#2", 7),
)


def normal_text(cron: str) -> str:
    """Return the stored form of an expression or alias; raises ScheduleError."""
    if not isinstance(cron, str):
        raise ScheduleError("cron", f"is text, not {type(cron).__name__}")
    if len(cron) > LONGEST:
        raise ScheduleError("cron", f"has {len(cron):,} characters, the limit is {LONGEST}")
    if len(cron.strip().splitlines()) > 1:
        raise ScheduleError("cron", "is one line")
    text = " ".join(cron.split())
    if text.startswith("@"):
        text = text.lower()
        if text not in ALIASES:
            known = ", ".join(ALIASES)
            raise ScheduleError("cron", f"{text[:20]!a} is no alias; there are {known}")
        return text
    return text.upper()


def field_texts(cron: str) -> list[str]:
    """Return the five checked fields of an expression or alias.

    Raises ScheduleError, also when no date matches them all.
    """
    text = normal_text(cron)
    texts = ALIASES.get(text, text).split()
    if len(texts) != 5:
        hint = "; for seconds use interval_seconds" if len(texts) == 6 else ""
        names = ", ".join(name for name, *_ in _FIELDS)
        raise ScheduleError("cron", f"has {len(texts)} fields, five are wanted: {names}{hint}")
    for part, (name, reader, limits, size) in zip(texts, _FIELDS, strict=True):
        _check_field(part, name=name, reader=reader, limits=limits, size=size)
    if not _has_a_date(texts):
        raise ScheduleError("cron", f"{text!a} means no date that exists")
    return texts


def _check_field(part: str, *, name: str, reader: Field, limits: str, size: int) -> None:
    terms = part.split(",")
    if len(terms) > MOST_TERMS:
        raise ScheduleError("cron", f"{name} has {len(terms)} terms, the limit is {MOST_TERMS}")
    for term in terms:
        try:
            reader.parse(term)
        except CronSimError as error:
            shown = f"{term[:20]!a}" if term else "an empty term"
            problem = f"{name} has {shown}; it takes {limits}, lists, ranges and steps above 0"
            raise ScheduleError("cron", problem) from error
        _, is_stepped, step = term.partition("/")
        # cronsim would take */90 for the first value alone, not for every 90 minutes.
        if is_stepped and int(step) > size:
            raise ScheduleError(
                "cron",
                f"{name} has a step of {step[:20]}, more than the {size} values it has; "
                "for longer spans use interval_minutes",
            )


def _has_a_date(texts: list[str]) -> bool:
    """Tell whether some date matches the fields; the calendar repeats every 28 years."""
    try:
        fields = CronSim(" ".join(texts), datetime(2000, 1, 1, tzinfo=UTC))
    except CronSimError:  # it refuses a day that none of these months has
        return False
    first, end = date(2000, 1, 1).toordinal(), date(2028, 1, 1).toordinal()
    days = map(date.fromordinal, range(first, end))
    return any(day.month in fields.months and fields.match_day(day) for day in days)
