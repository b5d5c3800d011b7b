"""The end of the last run that needs a retry; each attempt needs an opening. Pure.

All runs are equally likely to fail. Retries take no slots: a run's time includes all attempts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf, log

from jobs.forecast.simulation import Course, Group, Openings


@dataclass(frozen=True, slots=True, kw_only=True)
class Retries:
    """How often attempts fail (`part`, from 0 to 1), and when the next attempt follows.

    `waits` has the seconds from each failure to the next attempt, which takes `seconds`; its length
    is the largest number of failures that is likely.
    """

    part: float
    waits: Sequence[float]
    seconds: float


def end_of_retries(
    groups: Sequence[Group],
    course: Course,
    retries: Retries,
    openings: Openings,
) -> float:
    """Return the end in seconds of the last run with a failure; inf if it has no opening left.

    The median: with a probability of a half, a run with a failure ends then or later.
    """
    last, count = 0.0, course.starts.total()
    for failures in range(1, len(retries.waits) + 1):
        # With a probability of a half, one of `enough` runs fails this many times.
        enough = min(log(2) / retries.part**failures, count / 2)
        ends = sorted(_ends(groups, course, retries, failures, openings), reverse=True)
        for end, starts in ends:
            enough -= starts
            if enough <= 0:
                last = max(last, end)
                break
    return last


def _ends(
    groups: Sequence[Group],
    course: Course,
    retries: Retries,
    failures: int,
    openings: Openings,
) -> Iterator[tuple[float, int]]:
    """Yield for each opening when its last run ends after some failures, and its starts."""
    for (index, opened), first in course.ends.items():
        last = first
        for wait in retries.waits[:failures]:
            last = _start(groups[index], last + wait, openings) + retries.seconds
        yield last, course.starts[index, opened]


def _start(group: Group, after: float, openings: Openings) -> float:
    if not group.calendars or after == inf:
        return after
    opened = openings(group, after)
    return max(after, opened.begins) if opened else inf
