"""What a start costs, measured in a recording. Pure.

**Before a start**: while a run waits that a slot could have, a slot should not be idle. The idle
slot time, divided by the starts, is what a start costs. Owners with a cap or a rate do not count
as waiting: an idle slot is not for them. **After an end**: the outcome is recorded some time after
it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import median
from typing import Final

from jobs.forecast.replay.load import SECOND, Overhead, OwnerSetting

MOST: Final = 5 * SECOND
"""A larger cost is not one of a start: workers were away."""


@dataclass(frozen=True, slots=True)
class Seen:
    """A recorded attempt; times in microseconds. None: not known."""

    owner: str
    queued: int
    started: int
    ended: int
    recorded: int | None = None


def overhead_of(
    seen: Iterable[Seen], *, owners: Mapping[str, OwnerSetting], slots: int
) -> Overhead:
    """Return the costs of a start; 0 where the recording does not show them."""
    found = list(seen)
    idle, starts = _idle(found, owners=owners, slots=slots)
    lags = [max(0, one.recorded - one.ended) for one in found if one.recorded is not None]
    return Overhead(
        start=min(MOST, round(idle / starts)) if starts else 0,
        end=min(MOST, round(median(lags))) if lags else 0,
    )


def _idle(seen: list[Seen], *, owners: Mapping[str, OwnerSetting], slots: int) -> tuple[int, int]:
    """Return the idle slot time in which runs waited that could have had it, and their starts."""
    free = OwnerSetting()
    # By time: +1 waiting; -1 waiting and +1 running; -1 running. Ends come first.
    events: list[tuple[int, int, int]] = []
    for one in seen:
        setting = owners.get(one.owner, free)
        is_bound = setting.cap > 0 or setting.rate > 0
        if not is_bound:
            events.append((one.queued, 1, 0))
        events.append((max(one.queued, one.started), 0 if is_bound else -1, 1))
        events.append((max(one.ended, one.started, one.queued), 0, -1))
    events.sort(key=lambda event: (event[0], event[2], -event[1]))
    idle = starts = waiting = running = at = 0
    for now, more_waiting, more_running in events:
        idle += (now - at) * max(0, min(waiting, slots - running))
        starts += more_waiting < 0
        waiting += more_waiting
        running += more_running
        at = now
    return idle, starts
