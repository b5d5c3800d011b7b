"""Runs are grouped by the calendars that apply to them, for the simulation."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from jobs.calendars.gate import calendars_of, longest_spread, spread_of
from jobs.calendars.hours import hours_of
from jobs.forecast.course import Group
from jobs.forecast.estimate import NAMES
from jobs.models import Owner, Target

SPREAD_PARTS: Final = 20
"""Groups into which runs are split when a calendar spreads starts."""

ByCalendars = Mapping[tuple[int, ...], tuple[int, Sequence[str]]]
"""By the calendars that apply: the number of runs, and the names of some targets."""


def by_calendars(owner: Owner, parts: Sequence[Sequence[str]]) -> Iterator[ByCalendars]:
    """Yield that of each part of the names of targets."""
    if owner.calendar_version == 0:
        for names in parts:
            yield {(): (len(names), names[:NAMES])}
        return
    every = {name for names in parts for name in names}
    ids = dict(Target.objects.filter(owner=owner, name__in=every).values_list("name", "id"))
    calendars = calendars_of(owner.pk, job_id=None, target_ids={None, *ids.values()})
    for names in parts:
        found: dict[tuple[int, ...], list[str]] = defaultdict(list)
        for name in names:
            found[calendars[ids.get(name)]].append(name)
        yield {key: (len(those), those[:NAMES]) for key, those in found.items()}


def groups_of(counts: ByCalendars, alike: Group) -> Iterator[Group]:
    """Yield the groups of runs; with spread starts, one for each part of the spread."""
    ids = {one for calendars in counts for one in calendars}
    hours = hours_of(ids)
    spread = spread_of(ids)
    for calendars, (count, names) in counts.items():
        longest = longest_spread(calendars, spread)
        parts = min(SPREAD_PARTS, count) if longest else 1
        for part in range(parts):
            yield replace(
                alike,
                count=count * (part + 1) // parts - count * part // parts,
                calendars=tuple(hours[one] for one in calendars if one in hours),
                delay=longest * (part + 0.5) / parts,
                names=tuple(names) if part == 0 else (),
            )
