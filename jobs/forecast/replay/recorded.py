"""A load from the rows of attempts, with what it was recorded with.

A run with calendars may start from its due time on, in its windows. Any other one from when it was
queued; a retry as long after the attempt before it as it was.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import groupby
from operator import itemgetter
from typing import Any, Final
from uuid import UUID

from django.db import connection

from jobs.calendars.gate import calendars_of, longest_spread, spread_of
from jobs.calendars.hours import hours_of
from jobs.core import sql
from jobs.forecast.replay.load import Call, Hours, Load, setting_of
from jobs.forecast.replay.overhead import Seen, overhead_of
from jobs.forecast.replay.recorded_waves import RecordedWaves
from jobs.models import Owner, WindowPolicy
from jobs.schedules.phases import GOLDEN
from jobs.windows import CalendarHours

CHUNK: Final = 5_000
MEASURED: Final = 20_000
"""About how many attempts the costs of a start are measured from, if the load is a sample."""
_WHOLE: Final = 2**32


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """A load, and the waits (s) that were recorded, by owner."""

    load: Load
    waits: Mapping[str, Sequence[float]]
    runs: int
    """Attempts that were recorded in the span, also those that the load leaves out."""


@dataclass(slots=True)
class _Reading:
    """What is collected while rows are read."""

    calls: list[Call] = field(default_factory=list)
    seen: list[Seen] = field(default_factory=list)
    waits: dict[str, array[float]] = field(default_factory=lambda: defaultdict(lambda: array("d")))
    workers: set[UUID] = field(default_factory=set)


def count_attempts(*, start: datetime, end: datetime) -> int:
    """Return how many attempts were recorded in a span."""
    [row] = sql.run("forecast/replay_count", {"start": start, "end": end})
    return int(row["count"])


def read_recorded(
    *,
    start: datetime,
    end: datetime,
    queue: str,
    each: int,
    runs: int,
    hours: Mapping[int, CalendarHours] | None = None,
) -> Recorded:
    """Return the load of a queue in a span: one run in `each` of those `runs`.

    `hours` replaces the hours of calendars, by their ids.
    """
    owners = {owner.pk: owner for owner in Owner.objects.all()}
    settings = {owner.slug: setting_of(owner) for owner in owners.values()}
    found = _Reading()
    given = {"start": start, "end": end, "queue": queue, "each": each}
    gates = _Gates(owners, hours or {})
    waves = RecordedWaves(start)
    for run_id, rows in groupby(_rows(given), key=itemgetter("run_id")):
        some = list(rows)
        number = waves.number_of(some[0]["submission_id"], run_id)
        _add(found, some, owners=owners, gates=gates, wave=number)
    gaps = waves.hold(found.calls)
    found.calls.sort(key=lambda call: call.at)
    slots = _slots(found, start=start, end=end)
    seen = found.seen if each == 1 else _some_seen(given, owners, gates, runs=runs)
    return Recorded(
        load=Load(
            since=start,
            until=end,
            calls=found.calls,
            owners={call.owner: settings[call.owner] for call in found.calls},
            slots=slots,
            overhead=overhead_of(seen, owners=settings, slots=slots),
            gaps=gaps,
            each=each,
        ),
        waits=found.waits,
        runs=runs,
    )


def _rows(given: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the rows one by one: a million of them as dicts would take gigabytes."""
    with connection.cursor() as cursor:
        cursor.execute(sql.statement("forecast/replay_attempts"), given)
        names = [column.name for column in cursor.description]
        while rows := cursor.fetchmany(CHUNK):
            for row in rows:
                yield dict(zip(names, row, strict=True))


def _add(
    found: _Reading,
    rows: list[dict[str, Any]],
    *,
    owners: Mapping[int, Owner],
    gates: _Gates,
    wave: int = 0,
) -> None:
    """Add a run: its first attempt in the span, and those that followed."""
    owner = owners.get(rows[0]["owner_id"])
    if owner is None:
        return
    hours = gates.hours(rows[0])
    before: Call | None = None
    ended = 0
    for number, row in enumerate(rows):
        queued, started = row["queued"], max(row["queued"], row["started"])
        is_gated = hours is not None and number == 0
        call = Call(
            owner=owner.slug,
            task=row["task"],
            at=max(0, row["eligible"] if is_gated else queued - ended),
            run=max(0, row["ended"] - row["started"]),
            submission="" if row["submission_id"] is None else str(row["submission_id"]),
            priority=row["priority"],
            lock=row["lock_key"],
            start_by=row["start_by"] if number == 0 else None,
            hours=hours,
            wave=wave,
            is_counted=queued >= 0,
        )
        if call.start_by is not None and call.start_by <= call.at:
            call.start_by = None
        if before is None:
            found.calls.append(call)
        else:
            before.then = call
        before, ended = call, row["ended"]
        if call.is_counted:
            found.waits[owner.slug].append((started - queued) / 1_000_000)
        found.seen.append(Seen(owner.slug, queued, started, row["ended"], row["recorded"]))
        if row["worker_id"] is not None:
            found.workers.add(row["worker_id"])


def _some_seen(
    given: Mapping[str, Any], owners: Mapping[int, Owner], gates: _Gates, *, runs: int
) -> list[Seen]:
    """Return the attempts of a part of a span, without gaps: in a sample, slots seem idle."""
    start, length = given["start"], given["end"] - given["start"]
    begin = start + length / 2
    end = begin + length * min(0.5, MEASURED / runs)
    found = _Reading()
    for row in _rows({**given, "start": begin, "end": end, "each": 1}):
        _add(found, [row], owners=owners, gates=gates)
    return found.seen


def _slots(found: _Reading, *, start: datetime, end: datetime) -> int:
    given = {"start": start, "end": end, "workers": list(found.workers)}
    [row] = sql.run("forecast/replay_slots", given)
    return max(1, row["slots"] or _most_at_once(found.seen))


def _most_at_once(seen: Sequence[Seen]) -> int:
    """Return how many of some attempts ran at the same time, at most."""
    changes = sorted([(one.started, 1) for one in seen] + [(one.ended, -1) for one in seen])
    most = now = 0
    for _, change in changes:
        now += change
        most = max(most, now)
    return most


class _Gates:
    """The hours of runs, read once for each owner, job and target."""

    def __init__(self, owners: Mapping[int, Owner], changed: Mapping[int, CalendarHours]) -> None:
        self._owners = owners
        self._changed = changed
        self._ids: dict[tuple[int, int | None, int | None, str], tuple[int, ...]] = {}
        self._hours: dict[tuple[tuple[int, ...], float, float], Hours] = {}
        self._known: dict[int, CalendarHours] = {}
        self._spread: dict[int, int] = {}

    def hours(self, row: Mapping[str, Any]) -> Hours | None:
        """Return the hours of a run; None if it may start at any time."""
        owner = self._owners[row["owner_id"]]
        if owner.calendar_version == 0 or row["window_policy"] == WindowPolicy.OVERRIDDEN:
            return None
        ids = self._calendars(owner.pk, row["job_id"], row["target_id"], row["window_policy"])
        calendars = tuple(self._known[one] for one in ids if one in self._known)
        if not calendars:
            return None
        # As `jobs.calendars.gate` spreads starts.
        place = (row["run_id"].int * GOLDEN & 2**64 - 1) >> 32
        delay = longest_spread(ids, self._spread) * (place / _WHOLE)
        # Equal ones are one: a replay asks for their openings once.
        key = (ids, row["needed"], delay)
        if key not in self._hours:
            self._hours[key] = Hours(calendars, timedelta(seconds=row["needed"]), delay)
        return self._hours[key]

    def _calendars(
        self, owner: int, job: int | None, target: int | None, policy: str
    ) -> tuple[int, ...]:
        key = (owner, job, target, policy)
        if key not in self._ids:
            found = calendars_of(owner, job_id=job, target_ids={target}, policy=policy)[target]
            new = set(found) - self._known.keys()
            if new:
                self._known |= hours_of(new) | {
                    one: self._changed[one] for one in new if one in self._changed
                }
                self._spread |= spread_of(new)
            self._ids[key] = found
        return self._ids[key]
