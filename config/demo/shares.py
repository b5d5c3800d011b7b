"""The owners' shares of the workers over the last seconds, from snapshots of the fair queues."""

from collections import deque
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Final

from config.demo.screen import Part
from fleet import BrokerUnavailable
from fleet.broker.snapshot import Snapshot
from jobs.core.conf import setting
from jobs.forecast.estimate import divided
from jobs.runs.dispatch import owners

SPAN_SECONDS: Final = 2.0


class Shares:
    """Takes snapshots of the queues, and compares those of the last two seconds."""

    def __init__(self, *names: str) -> None:
        self._names = names
        self._snapshots: deque[Snapshot] = deque()

    def parts(self) -> Sequence[Part]:
        """Return a part for each owner; none while the broker is away."""
        try:
            now = owners().snapshot(*self._names, timeout=setting("PUBLISH_TIMEOUT_SECONDS"))
        except BrokerUnavailable:
            return ()
        self._snapshots.append(now)
        while now.at - self._snapshots[0].at > SPAN_SECONDS:
            self._snapshots.popleft()
        return parts_of(tuple(self._snapshots))


def parts_of(snapshots: Sequence[Snapshot], /) -> list[Part]:
    """Return the owners' parts between the first and the last snapshot, by name.

    The list is empty if no owner had work in that time, and for a single snapshot.
    """
    first, now = snapshots[0], snapshots[-1]
    entitled, received = _entitled_over(snapshots), now.received(since=first)
    if not any(entitled.values()):
        return []
    parts = []
    for name, owner in sorted(now.owners.items()):
        share = entitled.get(name, 0.0)
        has_work = share > 0 or received[name] > 0 or owner.has_work
        part = Part(name, share, received[name], owner.backlog, owner.running, has_work)
        parts.append(part)
    return parts


def _entitled_over(snapshots: Sequence[Snapshot]) -> Mapping[str, float]:
    """Return each owner's mean entitled share over the time in which any owner had work."""
    sums: dict[str, float] = {}
    for snapshot, following in pairwise(snapshots):
        for name, share in entitled_now(snapshot).items():
            sums[name] = sums.get(name, 0.0) + share * (following.at - snapshot.at)
    total = sum(sums.values())
    return {name: amount / total if total else 0.0 for name, amount in sums.items()}


def entitled_now(snapshot: Snapshot, /) -> Mapping[str, float]:
    """Return each owner's share by weight; an owner without a backlog gets at most what it uses."""
    running = sum(owner.running for owner in snapshot.owners.values())
    entitled = snapshot.entitled()
    asking = [owner for owner in snapshot.owners.values() if entitled[owner.name]]
    claims = [
        (owner.weight, owner.running / running if owner.running and not owner.backlog else 1.0)
        for owner in asking
    ]
    parts = zip((owner.name for owner in asking), divided(1.0, claims), strict=True)
    return dict.fromkeys(snapshot.owners, 0.0) | dict(parts)
