"""One job as a caller gives it: checked field by field, and turned into columns.

Used by Python, messages, imports and the admin's form. Does not read the database: the target is a
name, and phase and shard are still missing.
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
from jobs.core.crypto import CLEAR, Place, seal_of_job
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
"""Unknown fields of a bulk for which a near miss is searched: each search takes time."""
# The kind of a schedule that is not named, by the field that is given.
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
    """Its arguments, in clear."""
    columns: Mapping[str, Any]

    def row(self, *, target_id: int | None, owner_id: int | None = None) -> dict[str, Any]:
        """Return the job as the statements of this package take it; its place is still missing."""
        return {
            **self.columns,
            "id": None,
            "owner_id": owner_id,
            "key": self.key,
            "payload": f"\\x{self.payload.hex()}",
            "payload_key": CLEAR,
            "target_id": target_id,
            "phase": None,
            "shard": None,
        }

    def sealed(self, *, owner: str, job_id: int) -> dict[str, Any]:
        """Return the columns of encrypted arguments, and the job's id, to which they are bound."""
        sealed = seal_of_job(self.payload, place=Place(owner, job=job_id))
        return {"id": job_id, "payload": f"\\x{sealed.data.hex()}", "payload_key": sealed.key}


@dataclass(frozen=True, slots=True)
class _Common:
    """What many jobs of a bulk have in common, checked once."""

    task: Task | None
    columns: Mapping[str, Any]
    faults: tuple[FairshiftError, ...]


def job_spec(given: Mapping[str, Any]) -> tuple[JobSpec | None, list[FairshiftError]]:
    """Return a job's columns; or None and all its faults, at least one for each wrong field.

    `given` has the names of the model's fields, and `arguments`, a mapping, instead of the payload.
    A field that is missing, None or '' takes its default.
    """
    return JobSpecs()(given)


def fault_of(error: FairshiftError) -> tuple[str, str]:
    """Return the field of an error of `job_spec`, and the problem."""
    if isinstance(error, OptionError):
        return error.option, error.problem
    if isinstance(error, ScheduleError):
        return error.field, error.problem
    if isinstance(error, ArgumentError):
        return "arguments", f"{error.field}: {error.problem}"
    return ("task" if isinstance(error, UnknownTask) else "arguments"), str(error)


class JobSpecs:
    """`job_spec` for a bulk: values that several jobs share are checked once."""

    def __init__(self) -> None:
        self._known: dict[Any, _Common] = {}
        self._hints = HINTS
        self._max_bytes: int = setting("PAYLOAD_MAX_BYTES")

    def __call__(self, given: Any) -> tuple[JobSpec | None, list[FairshiftError]]:
        if not isinstance(given, Mapping):
            return None, [OptionError("job", "is a mapping of names of fields to values")]
        faults: list[FairshiftError] = []
        own = {name: _checked(faults, name, given.get(name)) for name in OWN}
        common = self._common(given)
        faults += common.faults
        payload = self._payload(faults, common.task, given.get("arguments"))
        if faults or payload is None:
            return None, faults
        key, target = own.pop("key"), own.pop("target")
        return JobSpec(key, target, payload, {**common.columns, **own}), faults

    def _common(self, given: Mapping[str, Any]) -> _Common:
        shared = {name: given[name] for name in given if name not in OWN and name != "arguments"}
        # With the types: True and 1 are equal as keys, but not for a field.
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
    # The combination is checked only when each field is right.
    wrong = {fault_of(fault)[0] for fault in faults}
    if wrong.isdisjoint(SCHEDULE):
        values |= _schedule(faults, values)
    if values["history_policy"] == HistoryPolicy.NONE and values["overlap"] != OverlapPolicy.ALLOW:
        problem = f"{values['overlap']!r} needs history_policy 'full': else no open run is known"
        faults.append(OptionError("overlap", problem))
    return _Common(task, {"task": task.name if task else "", **values}, tuple(faults))


def unknown_fields(names: Iterable[Any], *, hints: int = HINTS) -> Iterator[OptionError]:
    """Yield a fault for each name that is no field of a job, the first `hints` with a near miss."""
    known = {*FIELDS, "arguments"}
    for name in names:
        if name not in known:
            near = get_close_matches(str(name), sorted(known), n=1) if hints > 0 else []
            hints -= 1
            near = [REPLACED[name]] if name in REPLACED else near
            hint = f"; did you mean {near[0]}?" if near else ""
            yield OptionError(str(name)[:NAME_LIMIT], f"is unknown{hint}")


def _checked(faults: list[FairshiftError], name: str, value: Any) -> Any:
    """Return a field's value as it is stored; add a fault if it is wrong."""
    check, default = FIELDS[name]
    if (value is None or (isinstance(value, str) and not value)) and name not in REQUIRED:
        return default
    try:
        return check(name, value)
    except FairshiftError as error:
        faults.append(error)
        return default


def _check_limits(faults: list[FairshiftError], values: dict[str, Any], task: Task | None) -> None:
    """Add a fault for limits that contradict each other, or those of the task."""
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
            # Report other faults now, and not after the zone is corrected.
            _schedule(faults, {**values, "zone": ""})
        return {}
    return {"schedule": found.kind, **{name: getattr(found, name) for name in facts}}
