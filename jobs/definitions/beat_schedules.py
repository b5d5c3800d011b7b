"""django-celery-beat's intervals and crontabs as schedules of jobs, and the way back. Pure.

When day of month and day of week are both restricted, Celery needs both to match and cron one of
them: such a schedule is refused, both ways. Around changes of the clock, a job follows cron's rule.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta
from typing import Any, Final

from celery import current_app
from celery.schedules import ParseException, crontab
from cronsim import CronSimError
from cronsim.cronsim import Field
from django.conf import settings

from jobs.core.errors import OptionError
from jobs.schedules.cron import expression
from jobs.schedules.expressions import field_texts

# For each field of a crontab: cronsim's reader and its name there, and how many values it has.
_CRON: Final = (
    ("minute", Field.MINUTE, "minutes", 60),
    ("hour", Field.HOUR, "hours", 24),
    ("day_of_month", Field.DAY, "days", 31),
    ("month_of_year", Field.MONTH, "months", 12),
    ("day_of_week", Field.DOW, "weekdays", 7),
)


def span_of(interval: Any) -> dict[str, int]:
    """Return an IntervalSchedule as the field of a job; raises OptionError."""
    span = timedelta(**{interval.period: interval.every})
    seconds, rest = divmod(span, timedelta(seconds=1))
    if rest or seconds < 1:
        raise OptionError("interval", f"is whole seconds, not {interval.every} {interval.period}")
    return {"interval_seconds": seconds} if seconds % 60 else {"interval_minutes": seconds // 60}


def cron_of(row: Any) -> dict[str, str]:
    """Return a CrontabSchedule as the fields of a job; raises OptionError."""
    given = {name: str(getattr(row, name)).replace(" ", "") for name, *_ in _CRON}
    try:
        meant = crontab(**given)
    except (ParseException, ValueError, TypeError) as error:
        raise OptionError("crontab", f"cannot be read: {error}") from error
    parts = []
    restricted = []
    for name, reader, _, size in _CRON:
        values = set(getattr(meant, name))
        if name.startswith("day") and len(values) == size:
            # Not "1-31": for cron that would be a restriction.
            parts.append("*")
            continue
        parts.append(_text(given[name], values, reader))
        restricted += [name] if name.startswith("day") else []
    if len(restricted) == 2:
        problem = "restricts day_of_month and day_of_week: Celery wants both to match, cron either"
        raise OptionError("crontab", problem)
    zone = _zone(row)
    return {"cron": " ".join(parts), "zone": "" if zone == "UTC" else zone}


def crontab_of(cron: str, zone: str) -> dict[str, str]:
    """Return a job's expression and zone as the fields of a CrontabSchedule; raises OptionError.

    Raises ScheduleError for an expression that cannot be read.
    """
    fields = expression(cron).fields
    found = {"timezone": zone or "UTC"}
    for text, (name, _, plural, size) in zip(field_texts(cron), _CRON, strict=True):
        values = {
            0 if name == "day_of_week" and each == 7 else each for each in getattr(fields, plural)
        }
        if not all(isinstance(value, int) and value >= 0 for value in values):
            raise OptionError("cron", f"{text} has no counterpart in a crontab")
        found[name] = "*" if len(values) == size else _celery_text(name, text, values)
    days = {found["day_of_month"], found["day_of_week"]}
    if not fields.day_and and "*" in days:
        # Either may match, and one always does.
        found |= {"day_of_month": "*", "day_of_week": "*"}
    elif not fields.day_and:
        problem = "restricts day of month and day of week: cron wants either to match, Celery both"
        raise OptionError("cron", problem)
    if not _has_zones() and found["timezone"] != str(current_app.timezone):
        raise OptionError("zone", "has no counterpart: DJANGO_CELERY_BEAT_TZ_AWARE is off")
    return found


def _text(given: str, values: Collection[int], reader: Field) -> str:
    """Return a field unchanged if cron reads it in the same way, else its values."""
    text = given.upper()
    try:
        read = {0 if reader is Field.DOW and value == 7 else value for value in reader.parse(text)}
    except (CronSimError, ValueError, AssertionError):
        read = set()
    return text if read == set(values) else _listed(values)


def _celery_text(name: str, text: str, values: Collection[int]) -> str:
    """Return a field unchanged if Celery reads it in the same way, else its values."""
    try:
        read = set(getattr(crontab(**{name: text}), name))
    except (ParseException, ValueError, TypeError):
        read = set()
    return text if read == set(values) else _listed(values)


def _listed(values: Collection[int]) -> str:
    return ",".join(map(str, sorted(values)))


def _zone(row: Any) -> str:
    return str(row.timezone if _has_zones() else current_app.timezone)


def _has_zones() -> bool:
    return bool(getattr(settings, "DJANGO_CELERY_BEAT_TZ_AWARE", True))
