"""Where owners stand now: what of them runs and waits in the fair queues, and why no more does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.db.models import QuerySet

from fleet import BrokerUnavailable, OwnerSnapshot, OwnerState, Snapshot
from jobs.core.conf import setting
from jobs.models import Owner
from jobs.runs.dispatch import owners

LOOKED_AT: Final = 2_000
"""Owners in the fair queues that are ranked at most."""
STARVED_SECONDS: Final = 300.0
"""Seconds that runs of an owner wait before its limit, pause or share is reported."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """An owner now. None of `seen`: the fair queues do not know it, or Redis is away."""

    owner: Owner
    seen: OwnerSnapshot | None
    entitled: float | None
    """Its part by weight of the worker time of the last minutes; of now, if there was none. None:
    Redis is away."""
    received: float | None = None
    """Its part of the worker time of the last minutes; None: there was none, or it is not known."""

    @property
    def wait_seconds(self) -> float:
        """How long its oldest message has been waiting."""
        return 0.0 if self.seen is None else self.seen.oldest_wait_seconds or 0.0


def snapshot() -> Snapshot | None:
    """Return all owners in the fair queues; None if Redis does not answer."""
    try:
        return owners().snapshot(timeout=setting("PUBLISH_TIMEOUT_SECONDS"))
    except BrokerUnavailable:
        return None


def standings(
    rows: QuerySet[Owner],
    seen: Snapshot | None,
    received: Mapping[int, float | None],
    entitled: Mapping[int, float] | None,
    *,
    most: int,
) -> list[Standing]:
    """Return `most` of these owners, those whose runs wait longest first.

    `received` and `entitled` have shares of one span by owner, `entitled` None if there was no
    worker time. Of the snapshot only what belongs to these rows is used.
    """
    known: Mapping[str, OwnerSnapshot] = {} if seen is None else seen.owners
    now = {} if seen is None else seen.entitled()

    def share(owner: Owner) -> float | None:
        if seen is None:
            return None
        return now.get(owner.slug, 0.0) if entitled is None else entitled.get(owner.pk, 0.0)

    ranked = sorted(known.values(), key=_urgency)[:LOOKED_AT]
    found = {owner.slug: owner for owner in rows.filter(slug__in=[one.name for one in ranked])}
    first = [found[one.name] for one in ranked if one.name in found][:most]
    rest = rows.exclude(pk__in=[owner.pk for owner in first]).order_by("slug")
    return [
        Standing(
            owner=owner,
            seen=known.get(owner.slug),
            entitled=share(owner),
            received=received.get(owner.pk),
        )
        for owner in [*first, *rest[: most - len(first)]]
    ]


def starved(found: Sequence[Standing]) -> Standing | None:
    """Return the owner whose limit, pause or small share has kept its runs waiting for longest."""
    slow = [one for one in found if one.wait_seconds >= STARVED_SECONDS and _is_kept(one)]
    return max(slow, key=lambda one: one.wait_seconds, default=None)


def _is_kept(one: Standing) -> bool:
    if one.seen is None or not one.seen.backlog:
        return False
    if one.seen.state is not OwnerState.ELIGIBLE:
        return True
    # A long backlog alone is no fault: an owner with its share has what is its own.
    known = one.received is not None and one.entitled is not None
    return known and one.received < one.entitled / 2  # type: ignore[operator]


def _urgency(seen: OwnerSnapshot) -> Any:
    is_kept = seen.backlog > 0 and seen.state is not OwnerState.ELIGIBLE
    return -(seen.oldest_wait_seconds or 0.0), not is_kept, -seen.backlog, -seen.running, seen.name
