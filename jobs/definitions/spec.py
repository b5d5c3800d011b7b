"""One job as a caller gives it: checked field by field, and turned into columns.

Python, messages, imports and the admin's form all pass here. No database: a target is still
its name, and neither phase nor shard is given yet.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Final

from celery import Task

from jobs import schedules
from jobs.catalog.arguments import ArgumentSchema
from jobs.catalog.policies import checked_policy
from jobs.catalog.registry import REPLACED
from jobs.core.conf import setting
from jobs.core.errors import (
    ArgumentError,
    FairshiftError,
    OptionError,
    PayloadTooLarge,
    ScheduleError,
    UnknownTask,
)
from jobs.definitions.fields import FIELDS, NAME_LIMIT, OWN, POLICIES, REQUIRED, SCHEDULE, SHARED
from jobs.models import HistoryPolicy, OverlapPolicy, ScheduleKind
from jobs.runs import preparation

HINTS: Final = 100
"""How many unknown fields of a bulk are told with a near miss: each search takes its time."""
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
        self._hints = HINTS
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
            return self._looked_at(shared)
        if known is None:
            known = self._known[facts] = self._looked_at(shared)
        return known

    def _looked_at(self, shared: Mapping[str, Any]) -> _Common:
        unknown = list(unknown_fields(shared, hints=self._hints))
        self._hints -= len(unknown)
        return _common(shared, unknown)

    def _payload(
        self, faults: list[FairshiftError], task: Task | None, arguments: Any
    ) -> bytes | None:
        if task is None:
            return None
        try:
            if arguments is not None and not isinstance(arguments, Mapping):
                raise OptionError("arguments", "is a mapping of argument names to values")
            return ArgumentSchema.of(task).body((), arguments, max_bytes=self._max_bytes)
        except (OptionError, ArgumentError, PayloadTooLarge) as error:
            faults.append(error)
            return None


def _common(shared: Mapping[str, Any], unknown: Sequence[OptionError]) -> _Common:
    faults: list[FairshiftError] = list(unknown)
    values = {name: _checked(faults, name, shared.get(name)) for name in SHARED}
    task = values.pop("task")
    _check_limits(faults, values, task)
    values |= {name: list(values[name] or ()) for name in ("retry_on", "give_up_on")}
    # Only of single fields that are right can be said whether they go together.
    wrong = {fault_of(fault)[0] for fault in faults}
    if wrong.isdisjoint(SCHEDULE):
        values |= _schedule(faults, values)
    if values["history_policy"] == HistoryPolicy.NONE and values["overlap"] != OverlapPolicy.ALLOW:
        problem = f"{values['overlap']!r} needs history_policy 'full': else no open run is known"
        faults.append(OptionError("overlap", problem))
    return _Common(task, {"task": task.name if task else "", **values}, tuple(faults))


def unknown_fields(names: Iterable[Any], *, hints: int = HINTS) -> Iterator[OptionError]:
    """Yield a fault for each name that is no field of a job, the first with what may be meant."""
    known = {*FIELDS, "arguments"}
    for name in names:
        if name not in known:
            near = get_close_matches(str(name), sorted(known), n=1) if hints > 0 else []
            hints -= 1
            near = [REPLACED[name]] if name in REPLACED else near
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


def _check_limits(faults: list[FairshiftError], values: dict[str, Any], task: Task | None) -> None:
    """Add a fault for limits that do not go together, with those that the task declares."""
    given = {name: values[name] for name in POLICIES if values[name] is not None}
    try:
        checked_policy(given) if task is None else preparation.with_task_policy(task, given)
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
        if error.field == "zone":
            # What else is wrong is said at once, and not after the zone is mended.
            _schedule(faults, {**values, "zone": ""})
        return {}
    return {"schedule": found.kind, **{name: getattr(found, name) for name in facts}}
