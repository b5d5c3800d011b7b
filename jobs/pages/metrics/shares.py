"""Measure how the worker time of the last minutes was shared."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from fleet import OwnerState, Snapshot
from jobs.models import Owner
from jobs.pages.metrics.samples import Samples
from jobs.system.rollups import reads
from jobs.system.rollups.metric_totals import OTHER

MINUTES: Final = 5
WAITED_SECONDS: Final = 60.0
"""How long an owner has waited for a turn when it counts in Jain's index."""


def read_received(names: Collection[str]) -> Mapping[str, float] | None:
    """Return these owners' parts of the worker time of the last minutes; empty if there was none.

    None: it is not counted yet. Call it with the barrier lifted.
    """
    span = reads.last_minutes(MINUTES)
    if span is None:
        return None
    slugs = dict(Owner.objects.filter(slug__in=names).values_list("pk", "slug"))
    found = reads.by_owner(list(slugs), start=span[0], end=span[1])
    received = {slugs[one.owner_id]: one.received for one in found if one.received is not None}
    if not received and not reads.worker_seconds(start=span[0], end=span[1]):
        return {}
    return {name: received.get(name, 0.0) for name in slugs.values()}


def waiting_owners(seen: Snapshot) -> list[str]:
    """Return the owners that may be chosen, and wait: each of them should get its share."""
    return [
        name
        for name, owner in seen.owners.items()
        if owner.state is OwnerState.ELIGIBLE
        and (owner.oldest_wait_seconds or 0.0) >= WAITED_SECONDS
    ]


def measure(
    received: Mapping[str, float] | None, *, seen: Snapshot, owners: Sequence[str]
) -> Samples:
    """Return the samples of these owners, of the others together, and Jain's index.

    None if `received` is not known.
    """
    samples = Samples()
    if received is None:
        return samples
    if received:
        for name in owners:
            samples.add("owner_share_received", received.get(name, 0.0), name)
        rest = 1.0 - sum(received.get(name, 0.0) for name in owners)
        samples.add("owner_share_received", max(0.0, rest), OTHER)
    entitled = seen.entitled()
    parts = [
        received.get(name, 0.0) / entitled[name] for name in waiting_owners(seen) if entitled[name]
    ]
    samples.add("jain_index", jain(parts))
    return samples


def jain(parts: Sequence[float]) -> float:
    """Return Jain's index: 1 if all are equal, 1/n if one has all. 1 without any.

    Jain, Chiu and Hawe, "A quantitative measure of fairness and discrimination", DEC TR-301, 1984.
    """
    squares = sum(part * part for part in parts)
    return sum(parts) ** 2 / (len(parts) * squares) if squares else 1.0
