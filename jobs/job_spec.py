"""One job as a caller gives it: checked field by field, and turned into columns.

Python, messages, imports and the admin's form all pass here. No database: a target is still
its name, and neither phase nor shard is given yet.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from difflib import get_close_matches
from typing import Any, Final

from celery import Task

from jobs import preparing, schedules
from jobs.arguments import ArgumentSchema
from jobs.catalog import resolve
from jobs.conf import setting
from jobs.encoding import encode_body
from jobs.errors import (
    ArgumentError,
    FairshiftError,
    OptionError,
    PayloadTooLarge,
    ScheduleError,
    UnknownTask,
)
from jobs.models import HistoryPolicy, MisfirePolicy, OverlapPolicy, ScheduleKind
from jobs.options import KEY_LIMIT, LABEL_LIMIT, LOCK_LIMIT, Options, refuse_labels, refuse_text
from jobs.policies import CHECKS, checked_policy

POLICIES: Final = tuple(name for name in CHECKS if name != "history")
NAME_LIMIT: Final = 200
CAP_LIMIT: Final = 100_000
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")

# A schedule that is not named is the one whose own field is given.
KINDS: Final = {
    "cron": ScheduleKind.CRON,
    "interval_minutes": ScheduleKind.INTERVAL,
    "interval_seconds": ScheduleKind.SECONDS,
    "once_at": ScheduleKind.ONCE,
}


@dataclass(frozen=True, slots=True)
class JobSpec:
    """A checked job: its key, the name of its target ('' for none), and its other columns."""

    key: str
    target: str
    payload: bytes
    columns: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _Common:
    """What many jobs of a bulk share, checked once for all of them."""

    task: Task | None
    columns: Mapping[str, Any]
    faults: tuple[FairshiftError, ...]


def job_spec(given: Mapping[str, Any]) -> tuple[JobSpec | None, list[FairshiftError]]:
    """Return a job's columns, or None and every fault in it: one or more for each wrong field.

    `given` has the names of the model's fields, and `arguments`, a mapping, in the place of
    the payload. What is left out, None or '' takes the default of the field.
    """
    return JobSpecs()(given)


def fault_of(error: FairshiftError) -> tuple[str, str]:
    """Return the field that an error of `job_spec` is about, and the problem without it."""
    if isinstance(error, OptionError):
        return error.option, error.problem
    if isinstance(error, ScheduleError):
        return error.field, error.problem
    if isinstance(error, ArgumentError):
        return "arguments", f"{error.field}: {error.problem}"
    return ("task" if isinstance(error, UnknownTask) else "arguments"), str(error)


class JobSpecs:
    """`job_spec` for a whole bulk: what jobs have in common is checked once."""

    def __init__(self) -> None:
        self._known: dict[Any, _Common] = {}
        self._max_bytes: int = setting("PAYLOAD_MAX_BYTES")

    def __call__(self, given: Any) -> tuple[JobSpec | None, list[FairshiftError]]:
        """Return what `job_spec` returns."""
        if not isinstance(given, Mapping):
            return None, [OptionError("job", "is a mapping of names of fields to values")]
        faults: list[FairshiftError] = []
        own = {name: _checked(faults, name, given.get(name)) for name in OWN}
        common = self._common(given)
        faults += common.faults
        payload = self._payload(faults, common.task, given.get("arguments"))
        if faults or payload is None:
            return None, faults
        columns = {**common.columns, "name": own["name"], "labels": own["labels"]}
        columns["lock_key"] = own["lock_key"]
        return JobSpec(own["key"], own["target"], payload, columns), faults

    def _common(self, given: Mapping[str, Any]) -> _Common:
        shared = {name: given[name] for name in given if name not in OWN and name != "arguments"}
        # With the types: True and 1 are one key, and not the same to a field.
        facts = tuple((name, type(value), value) for name, value in shared.items())
        try:
            known = self._known.get(facts)
        except TypeError:  # a list, say
            return _common(shared)
        if known is None:
            known = self._known[facts] = _common(shared)
        return known

    def _payload(
        self, faults: list[FairshiftError], task: Task | None, arguments: Any
    ) -> bytes | None:
        if task is None:
            return None
        try:
            if arguments is not None and not isinstance(arguments, Mapping):
                raise OptionError("arguments", "is a mapping of argument names to values")
            schema = ArgumentSchema.of(task)
            args, kwargs = schema.bind((), arguments or {})
            return encode_body(
                args, kwargs, max_bytes=self._max_bytes, positional=schema.positional
            )
        except (OptionError, ArgumentError, PayloadTooLarge) as error:
            faults.append(error)
            return None


def _common(shared: Mapping[str, Any]) -> _Common:
    faults: list[FairshiftError] = list(unknown_fields(shared))
    values = {name: _checked(faults, name, shared.get(name)) for name in SHARED}
    task = values.pop("task")
    _check_limits(faults, values)
    values |= {name: list(values[name] or ()) for name in ("retry_on", "give_up_on")}
    # Only of single fields that are right can be said whether they go together.
    wrong = {fault_of(fault)[0] for fault in faults}
    if wrong.isdisjoint(SCHEDULE):
        values |= _schedule(faults, values)
    if values["history_policy"] == HistoryPolicy.NONE and values["overlap"] != OverlapPolicy.ALLOW:
        problem = f"{values['overlap']!r} needs history_policy 'full': else no open run is known"
        faults.append(OptionError("overlap", problem))
    return _Common(task, {"task": task.name if task else "", **values}, tuple(faults))


def unknown_fields(names: Iterable[Any]) -> Iterator[OptionError]:
    """Yield a fault for each name that is no field of a job, with what may have been meant."""
    known = [*FIELDS, "arguments"]
    for name in names:
        if name not in known:
            near = get_close_matches(str(name), known, n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            yield OptionError(str(name)[:NAME_LIMIT], f"is unknown{hint}")


def _checked(faults: list[FairshiftError], name: str, value: Any) -> Any:
    """Return a field's value in its kept form; add a fault if there is none."""
    check, default = FIELDS[name]
    if (value is None or (isinstance(value, str) and not value)) and name not in REQUIRED:
        return default
    try:
        return check(name, value)
    except FairshiftError as error:
        faults.append(error)
        return default


def _check_limits(faults: list[FairshiftError], values: dict[str, Any]) -> None:
    given = {name: values[name] for name in POLICIES if values[name] is not None}
    try:
        checked_policy(given)
    except OptionError as error:
        faults.append(error)


def _schedule(faults: list[FairshiftError], values: dict[str, Any]) -> dict[str, Any]:
    """Return the columns of the schedule in their normal form."""
    given = (kind for name, kind in KINDS.items() if values[name] not in (None, ""))
    kind = values["schedule"] or next(given, ScheduleKind.MANUAL)
    facts = {name: values[name] for name in SCHEDULE if name != "schedule"}
    try:
        found = schedules.checked(schedules.Schedule(kind=str(kind), **facts))
    except ScheduleError as error:
        faults.append(error)
        return {}
    return {"schedule": found.kind, **{name: getattr(found, name) for name in facts}}


# --- single fields: each check takes the field's name and a value --------------------------------
Check = Callable[[str, Any], Any]


def _task(name: str, value: Any) -> Task:
    if value is None:
        raise OptionError(name, "is required")
    return resolve(value)


def _key(name: str, value: Any) -> str:
    if not value:
        raise OptionError(name, "is required: the caller's own id of the job")
    refuse_text(name, value, most=KEY_LIMIT)
    return str(value)


def _lock(name: str, value: Any) -> str:
    refuse_text(name, value, most=LOCK_LIMIT)
    # A message carries the lock of a run without history, and can hold no such one.
    if _CONTROL.search(value):
        raise OptionError(name, "holds a control character, such as a tab or the end of a line")
    return str(value)


def _text(most: int) -> Check:
    def checked(name: str, value: Any) -> str:
        refuse_text(name, value, most=most)
        return str(value)

    return checked


def _labels(_name: str, value: Any) -> dict[str, str]:
    refuse_labels(value)
    return dict(value)


def _queue(name: str, value: Any) -> str:
    refuse_text(name, value, most=100)
    return preparing.queue(Options(queue=value)) if value else ""


def _whole(most: int) -> Check:
    def checked(name: str, value: Any) -> int:
        # A bool is an int to Python, and a mistake here.
        if type(value) is not int or not 1 <= value <= most:
            raise OptionError(name, f"is a whole number from 1 to {most}")
        return value

    return checked


def _as_given(_name: str, value: Any) -> Any:
    """Leave the check to `jobs.schedules`, which knows the limits."""
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
        refuse_text(name, one, most=NAME_LIMIT)
    return names


def _moment(name: str, value: Any) -> datetime:
    problem = "is a time with its offset, such as 2027-01-31T09:00:00+01:00"
    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) else value
    except ValueError:
        raise OptionError(name, problem) from None
    if not isinstance(moment, datetime) or moment.utcoffset() is None:
        raise OptionError(name, problem)
    return moment


OWN: Final = ("key", "name", "target", "labels", "lock_key")
"""Fields in which nearly every job differs from the others."""

SCHEDULE: Final = (
    "schedule",
    *("interval_minutes", "interval_seconds", "cron", "zone"),
    *("once_at", "start_at", "end_at", "smooth"),
)
REQUIRED: Final = frozenset({"key", "task"})
FIELDS: Final[Mapping[str, tuple[Check, Any]]] = {
    "key": (_key, ""),
    "name": (_text(NAME_LIMIT), ""),
    "target": (_text(preparing.TARGET_LIMIT), ""),
    "labels": (_labels, {}),
    "lock_key": (_lock, ""),
    "task": (_task, None),
    "queue": (_queue, ""),
    "schedule": (_one_of(*ScheduleKind.values), ""),
    "interval_minutes": (_as_given, None),
    "interval_seconds": (_as_given, None),
    "cron": (_text(LABEL_LIMIT), ""),
    "zone": (_text(64), ""),
    "once_at": (_moment, None),
    "start_at": (_moment, None),
    "end_at": (_moment, None),
    "smooth": (_flag, False),
    "misfire": (_one_of(*MisfirePolicy.values), MisfirePolicy.ONCE.value),
    "misfire_cap": (_whole(CAP_LIMIT), 100),
    "misfire_deadline_seconds": (CHECKS["deadline_seconds"], None),
    "overlap": (_one_of(*OverlapPolicy.values), OverlapPolicy.ALLOW.value),
    **{name: (CHECKS[name], None) for name in POLICIES},
    "retry_on": (_error_names, None),
    "give_up_on": (_error_names, None),
    "history_policy": (_one_of(*HistoryPolicy.values), HistoryPolicy.FULL.value),
    "enabled": (_flag, True),
}
"""Every field of a job but its arguments: the check, and what holds when it is left out."""

SHARED: Final = tuple(name for name in FIELDS if name not in OWN)
