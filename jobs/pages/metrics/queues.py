"""Measure the fair queues and the owners in them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from fleet import OwnerSnapshot, OwnerState
from jobs.owners.loads import Loads
from jobs.pages.metrics.samples import Samples
from jobs.system.rollups.metric_totals import OTHER

EVENTS: Final = (
    *("published", "taken", "finished", "acked", "given_back", "rescued", "withdrawn"),
    *("duplicates", "diverted", "unconfirmed", "restored", "adopted", "mended", "quarantined"),
)
"""Counters of `fleet/transport/lua` that are measured, also while they are 0."""
GAUGES: Final = {
    "queue_ready": "ready",
    "queue_delayed": "delayed",
    "queue_leased": "leased",
    "queue_eligible_owners": "eligible",
    "queue_in_quarantine": "in_quarantine",
}
"""By family: the number of `fleet/transport/lua/counters.lua`."""
WAITING_LONGEST: Final = 10
"""Owners that are named because they have waited longest, besides those with most load."""


def named_owners(found: Loads, *, most: int) -> list[str]:
    """Return the owners that metrics name: those with most load, and those that wait longest."""
    seen = [owner for owner in found.owners.owners.values() if owner.has_work or owner.backlog]
    by_load = sorted(seen, key=lambda owner: (-owner.backlog - owner.running, owner.name))[:most]
    taking = [owner for owner in seen if owner.state is OwnerState.ELIGIBLE]
    by_wait = sorted(taking, key=lambda owner: (-_wait(owner), owner.name))[:WAITING_LONGEST]
    return list(dict.fromkeys(owner.name for owner in [*by_load, *by_wait]))


def measure(found: Loads, *, queues: Collection[str], owners: Sequence[str]) -> Samples:
    """Return the samples of the queues, and of these owners; all others are summed up."""
    samples = Samples()
    for queue, numbers in found.counters.items():
        label = queue if queue in queues else OTHER
        for event in EVENTS:
            samples.add("queue_messages", numbers.get(event, 0), label, event)
        for family, name in GAUGES.items():
            samples.add(family, numbers[name], label)
        waits = [_wait(owner) for owner in found.by_queue[queue].owners.values()]
        samples.add_largest("queue_oldest_wait_seconds", max(waits, default=0.0), label)
    _measure_owners(samples, found, owners)
    return samples


def _measure_owners(samples: Samples, found: Loads, named: Sequence[str]) -> None:
    entitled = found.owners.entitled()
    for name, owner in found.owners.owners.items():
        label = name if name in named else OTHER
        samples.add_largest("owner_oldest_wait_seconds", _wait(owner), label)
        samples.add("owner_share_entitled", entitled[name], label)
        if label != OTHER:
            samples.add("owner_backlog", owner.backlog, name)
            samples.add("owner_running", owner.running, name)
            samples.add("owner_takes_turns", int(owner.state is OwnerState.ELIGIBLE), name)
    # By the queues' numbers: not every owner is looked at.
    known = [found.owners.owners[name] for name in named]
    ready = sum(numbers["ready"] for numbers in found.counters.values())
    leased = sum(numbers["leased"] for numbers in found.counters.values())
    samples.add("owner_backlog", max(0, ready - sum(each.backlog for each in known)), OTHER)
    samples.add("owner_running", max(0, leased - sum(each.running for each in known)), OTHER)


def _wait(owner: OwnerSnapshot) -> float:
    return owner.oldest_wait_seconds or 0.0
