"""The load of the fair queues and of their owners, for metrics: bounded in rows and in time."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from fleet import BrokerUnavailable, Owners, Snapshot
from fleet.broker.snapshot import merged
from jobs.runs import dispatch

LOOKED_AT: Final = 2_000
"""Owners of a queue that are looked at. If it has more, those that have had least are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loads:
    """The fair queues at one moment."""

    counters: Mapping[str, Mapping[str, int]]
    """By queue: the numbers of `fleet/transport/lua/counters.lua`."""
    by_queue: Mapping[str, Snapshot]
    """By queue: the owners that were looked at."""
    owners: Snapshot
    """The same, summed over the queues."""


def loads(*, seconds: float) -> Loads:
    """Return the loads; raise BrokerUnavailable if that takes longer, or Redis does not answer."""
    until = time.monotonic() + seconds

    def left() -> float:
        if (rest := until - time.monotonic()) <= 0:
            raise BrokerUnavailable("the look at the fair queues took too long")
        return rest

    counters, snapshots = {}, {}
    for queue in dispatch.owners().queues:
        one = Owners(dispatch.broker(), (queue,))
        counters[queue] = one.counters(queue, timeout=left())
        names: list[str] = []
        if counters[queue]["owners"] > LOOKED_AT:
            names = one.waiting_names(most=LOOKED_AT, timeout=left())
        is_none = counters[queue]["owners"] > LOOKED_AT and not names
        snapshots[queue] = Snapshot(0, {}) if is_none else one.snapshot(*names, timeout=left())
    every = [owner for each in snapshots.values() for owner in each.owners.values()]
    at = max((each.at for each in snapshots.values()), default=0.0)
    return Loads(counters=counters, by_queue=snapshots, owners=Snapshot(at, merged(every)))
