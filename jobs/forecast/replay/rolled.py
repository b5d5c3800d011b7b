"""A load from the statistics, for spans whose attempts were removed.

A minute of an owner and task has a histogram of waits and one of run times. Its attempts end
evenly over the minute; long and short waits and run times are paired at random, always in the same
way. Queue, priority, submission, lock and windows are not known.
"""

from __future__ import annotations

import time
from array import array
from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import datetime
from random import Random
from typing import Any, Final

from jobs.core import sql
from jobs.core.errors import OptionError
from jobs.forecast.replay.load import SECOND, Call, Load, OutOfTime, setting_of
from jobs.forecast.replay.recorded import Recorded
from jobs.models import Owner, Worker

MINUTE: Final = 60 * SECOND
MOST_ATTEMPTS: Final = 5_000_000
"""Most attempts of a span: each is read, also those that a sample leaves out."""


def count_rolled(*, start: datetime, end: datetime) -> int:
    """Return how many attempts the statistics of a span have."""
    [row] = sql.run("forecast/replay_rollup_count", {"start": start, "end": end})
    return int(row["count"])


def read_rolled(
    *,
    start: datetime,
    end: datetime,
    growth: float,
    each: int,
    runs: int,
    deadline: float | None = None,
) -> Recorded:
    """Return the load of a span of so many `runs`, one in `each`; `growth` is the histograms'.

    Raises OptionError for more than MOST_ATTEMPTS, OutOfTime after `deadline` (time.monotonic).
    """
    if runs > MOST_ATTEMPTS:
        problem = (
            f"ends a span of {runs:,} attempts; from statistics it is {MOST_ATTEMPTS:,} at most"
        )
        raise OptionError("to", problem)
    owners = {owner.pk: owner for owner in Owner.objects.all()}
    calls: list[Call] = []
    waits: dict[str, array[float]] = defaultdict(lambda: array("d"))
    busy: dict[int, int] = defaultdict(int)
    chance = Random(0)  # noqa: S311  the same each time
    number = 0
    for row in sql.run("forecast/replay_rollups", {"start": start, "end": end}):
        if deadline is not None and time.monotonic() > deadline:
            raise OutOfTime
        owner = owners.get(row["owner_id"])
        if owner is None:
            continue
        for ended, wait, run in attempts_of(row, growth=growth, chance=chance):
            number += 1
            busy[row["minute"]] += run
            if number % each:
                continue
            at = ended - run - wait
            is_counted = at >= 0
            if is_counted:
                waits[owner.slug].append(wait / SECOND)
            calls.append(Call(owner.slug, row["task"], max(0, at), run, is_counted=is_counted))
    calls.sort(key=lambda call: call.at)
    return Recorded(
        load=Load(
            since=start,
            until=end,
            calls=calls,
            owners={owner.slug: setting_of(owner) for owner in owners.values()},
            slots=_slots(start, end, busy.values()),
            each=each,
        ),
        waits=waits,
        runs=runs,
    )


def attempts_of(
    row: dict[str, Any], *, growth: float, chance: Random
) -> Iterator[tuple[int, int, int]]:
    """Yield end, wait and run time of the attempts of a minute, in microseconds since the start."""
    waits = list(_values(row["wait_buckets"], row["wait_counts"], growth))
    runs = list(_values(row["run_buckets"], row["run_counts"], growth))
    chance.shuffle(waits)
    chance.shuffle(runs)
    for place, (wait, run) in enumerate(zip(waits, runs, strict=False)):
        ended = row["minute"] * SECOND + MINUTE * (2 * place + 1) // (2 * len(waits))
        yield ended, wait, run


def _values(buckets: Sequence[int], counts: Sequence[int], growth: float) -> Iterator[int]:
    for bucket, count in zip(buckets, counts, strict=True):
        value = round(2 * growth**bucket / (growth + 1) * SECOND)
        for _ in range(count):
            yield value


def _slots(start: datetime, end: datetime, busy: Any) -> int:
    """Return the slots of the workers of that time; at least what the busiest minute used."""
    rows = Worker.objects.filter(started_at__lt=end, heartbeat_at__gt=start)
    given = {"start": start, "end": end, "workers": list(rows.values_list("id", flat=True))}
    [row] = sql.run("forecast/replay_slots", given)
    used = max(busy, default=0)
    return max(1, row["slots"] or 0, -(-used // MINUTE))
