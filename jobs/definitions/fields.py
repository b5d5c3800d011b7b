"""The fields of a job that a caller gives: the check and the default of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final

from celery import Task

from jobs.catalog import placeholders
from jobs.catalog.error_names import refuse_unknown_names
from jobs.catalog.policies import CHECKS, whole_number
from jobs.catalog.registry import resolve
from jobs.core.errors import OptionError
from jobs.core.inputs import KEY_LIMIT, LOCK_LIMIT, in_utc, refuse_labels, refuse_name
from jobs.models import HistoryPolicy, MisfirePolicy, OverlapPolicy, ScheduleKind
from jobs.runs import preparation
from jobs.runs.options import Options
from jobs.schedules import schedule
from jobs.schedules.expressions import LONGEST

POLICIES: Final = tuple(name for name in CHECKS if name != "log_level")
NAME_LIMIT: Final = 200
CAP_LIMIT: Final = 100_000

Check = Callable[[str, Any], Any]
"""Takes a field's name and a value; returns the value as it is stored, or raises OptionError."""


def _task(name: str, value: Any) -> Task:
    if value is None:
        raise OptionError(name, "is required")
    return resolve(value)


def _key(name: str, value: Any) -> str:
    if not value:
        raise OptionError(name, "is required: the caller's own id of the job")
    refuse_name(name, value, most=KEY_LIMIT)
    return str(value)


def _lock(name: str, value: Any) -> str:
    refuse_name(name, value, most=LOCK_LIMIT)
    return str(value)


def _text(most: int) -> Check:
    def checked(name: str, value: Any) -> str:
        refuse_name(name, value, most=most)
        return str(value)

    return checked


def _labels(_name: str, value: Any) -> dict[str, str]:
    refuse_labels(value)
    return dict(value)


def _queue(name: str, value: Any) -> str:
    refuse_name(name, value, most=100)
    return preparation.queue_name(Options(queue=value)) if value else ""


def _as_given(_name: str, value: Any) -> Any:
    """Return the value: `jobs.schedules` checks it."""
    return value


def _one_of(*choices: str) -> Check:
    def checked(name: str, value: Any) -> str:
        if not isinstance(value, str) or value not in choices:
            raise OptionError(name, f"is one of: {', '.join(choices)}")
        return str(value)

    return checked


def _flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise OptionError(name, "is true or false")
    return value


def _error_names(name: str, value: Any) -> tuple[str, ...]:
    names: tuple[str, ...] = CHECKS[name](name, value)
    for one in names:
        refuse_name(name, one, most=NAME_LIMIT)
    refuse_unknown_names(name, names)
    return names


def _moment(name: str, value: Any) -> datetime:
    problem = "is a time with its offset, such as 2027-01-31T09:00:00+01:00"
    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) else value
    except ValueError:
        raise OptionError(name, problem) from None
    if not isinstance(moment, datetime) or moment.utcoffset() is None:
        raise OptionError(name, problem)
    return in_utc(moment)


OWN: Final = ("key", "name", "target", "labels", "lock_key")
"""Fields that differ in most jobs of a bulk."""
SCHEDULE: Final = ("schedule", *schedule.FIELDS)
REQUIRED: Final = frozenset({"key", "task"})
FIELDS: Final[Mapping[str, tuple[Check, Any]]] = {
    "key": (_key, ""),
    "name": (_text(NAME_LIMIT), ""),
    "target": (_text(placeholders.TARGET_LIMIT), ""),
    "labels": (_labels, {}),
    "lock_key": (_lock, ""),
    "task": (_task, None),
    "queue": (_queue, ""),
    "schedule": (_one_of(*ScheduleKind.values), ""),
    "interval_minutes": (_as_given, None),
    "interval_seconds": (_as_given, None),
    "cron": (_text(LONGEST), ""),
    "zone": (_text(64), ""),
    "once_at": (_moment, None),
    "start_at": (_moment, None),
    "end_at": (_moment, None),
    "smooth": (_flag, False),
    "misfire": (_one_of(*MisfirePolicy.values), MisfirePolicy.ONCE.value),
    "misfire_cap": (whole_number(1, CAP_LIMIT), 100),
    "misfire_deadline_seconds": (CHECKS["deadline_seconds"], None),
    "overlap": (_one_of(*OverlapPolicy.values), OverlapPolicy.ALLOW.value),
    **{name: (CHECKS[name], None) for name in POLICIES},
    "retry_on": (_error_names, None),
    "give_up_on": (_error_names, None),
    "history_policy": (_one_of(*HistoryPolicy.values), HistoryPolicy.FULL.value),
    "enabled": (_flag, True),
}
"""Every field of a job but its arguments: the check and the default."""
SHARED: Final = tuple(name for name in FIELDS if name not in OWN)
