"""The checks of a schedule: one refusal for each field, with its limit."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Final

from jobs.core.errors import ScheduleError
from jobs.core.zones import moment_problem, shown, zone_problem
from jobs.schedules.expressions import field_texts, normal_text
from jobs.schedules.schedule import FIELDS, Schedule

LONGEST_MINUTES: Final = 525_600
LONGEST_SECONDS: Final = 86_400
_EARLIEST: Final = datetime(1970, 1, 1, tzinfo=UTC)
_LATEST: Final = datetime(2200, 1, 1, tzinfo=UTC)

# For each kind: the field that it must have, and those that it may have.
_FIELDS: Final[dict[str, tuple[str, frozenset[str]]]] = {
    "manual": ("", frozenset()),
    "once": ("once_at", frozenset({"smooth"})),
    "interval": ("interval_minutes", frozenset({"start_at", "end_at"})),
    "seconds": ("interval_seconds", frozenset({"start_at", "end_at"})),
    "cron": ("cron", frozenset({"start_at", "end_at", "smooth"})),
}


def checked(schedule: Schedule) -> Schedule:
    """Return the schedule as it is stored; raises ScheduleError naming the field and the limit.

    `once_at` is rounded up to the whole minute, moments are in UTC, a cron expression is in its
    stored form. Every kind may have a zone: times are shown in it. Phase and shard are not checked,
    callers do not give them. Checking twice changes nothing.
    """
    if not isinstance(schedule.kind, str) or schedule.kind not in _FIELDS:
        raise ScheduleError("schedule", f"{shown(schedule.kind)} is none of {', '.join(_FIELDS)}")
    _check_fields(schedule)
    if problem := zone_problem(schedule.zone):
        raise ScheduleError("zone", problem)
    start_at, end_at = _moment(schedule, "start_at"), _moment(schedule, "end_at")
    if start_at is not None and end_at is not None and end_at <= start_at:
        raise ScheduleError("end_at", "must be later than start_at")
    once_at, cron = _moment(schedule, "once_at"), schedule.cron
    if once_at is not None:
        once_at += -(once_at - _EARLIEST) % timedelta(minutes=1)
    if schedule.kind == "interval":
        _check_number(schedule, "interval_minutes", most=LONGEST_MINUTES)
    elif schedule.kind == "seconds":
        _check_number(schedule, "interval_seconds", most=LONGEST_SECONDS)
        if (seconds := schedule.interval_seconds or 0) % 60 == 0:
            problem = f"is whole minutes; use interval_minutes={seconds // 60}"
            raise ScheduleError("interval_seconds", problem)
    elif schedule.kind == "cron":
        field_texts(cron)
        cron = normal_text(cron)
    return replace(schedule, start_at=start_at, end_at=end_at, once_at=once_at, cron=cron)


def _check_fields(schedule: Schedule) -> None:
    """Refuse a field of another kind, and one that is missing."""
    own, beside = _FIELDS[schedule.kind]
    for field in FIELDS:
        value = getattr(schedule, field)
        is_given = not (value is None or value is False or value == "")
        if is_given and field not in (own, "zone", *beside):
            raise ScheduleError(field, f"does not go with the schedule {schedule.kind!r}")
        if field == own and not is_given:
            raise ScheduleError(field, f"is required by the schedule {schedule.kind!r}")
    if not isinstance(schedule.smooth, bool):
        raise ScheduleError("smooth", "is True or False")


def _moment(schedule: Schedule, field: str) -> datetime | None:
    value: datetime | None = getattr(schedule, field)
    if value is None:
        return None
    if problem := moment_problem(value, first=_EARLIEST, end=_LATEST):
        raise ScheduleError(field, problem)
    return value.astimezone(UTC)


def _check_number(schedule: Schedule, field: str, *, most: int) -> None:
    value = getattr(schedule, field)
    if not isinstance(value, int) or isinstance(value, bool):
        raise ScheduleError(field, f"is a whole number, not {type(value).__name__}")
    if not 1 <= value <= most:
        raise ScheduleError(field, f"is from 1 to {most:,}")
