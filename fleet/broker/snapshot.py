"""What is seen of owners in the fair queues, and their shares: pure.

A share is a part of 1. What an owner is entitled to is a matter of the moment: its weight among
those that have work. What it received is a matter of a span: two snapshots, and the worker time
that ended between them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum


class OwnerState(StrEnum):
    """Whether an owner may be chosen, and if not, why."""

    ELIGIBLE = "eligible"
    AT_CAP = "at cap"
    PAUSED = "paused"
    RESTING = "resting"  # over its rate
    IDLE = "idle"  # nothing of it is ready


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerSnapshot:
    """One owner at one moment, in all fair queues that were looked at.

    `running` counts what workers have taken and not finished; `worker_seconds` is what has
    finished since the queues began. None stands for no limit, nothing that waits, no rest.
    """

    name: str
    weight: float
    max_running: int | None
    is_paused: bool
    rate: float | None
    backlog: int
    running: int
    finished_count: int
    worker_seconds: float
    is_eligible: bool
    oldest_wait_seconds: float | None
    rest_seconds: float | None

    @property
    def state(self) -> OwnerState:
        if self.is_paused:
            return OwnerState.PAUSED
        if self.max_running is not None and self.running >= self.max_running:
            return OwnerState.AT_CAP
        if self.rest_seconds is not None:
            return OwnerState.RESTING
        return OwnerState.ELIGIBLE if self.backlog else OwnerState.IDLE

    @property
    def has_work(self) -> bool:
        """Whether it takes part in the sharing: something runs, or waits and may be chosen."""
        return self.running > 0 or (self.backlog > 0 and not self.is_paused)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Owners by name at one moment; `at` is in seconds of the broker's clock."""

    at: float
    owners: Mapping[str, OwnerSnapshot]

    def entitled(self) -> dict[str, float]:
        """Return each owner's share by weight among those that have work now."""
        weights = {
            name: owner.weight if owner.has_work else 0.0 for name, owner in self.owners.items()
        }
        return _shares(weights)

    def received(self, *, since: Snapshot | None = None) -> dict[str, float]:
        """Return each owner's share of the worker time that ended since another snapshot.

        Without one: since the queues began. All are 0 when none ended.
        """
        before = {} if since is None else since.owners
        spans = {}
        for name, owner in self.owners.items():
            earlier = before[name].worker_seconds if name in before else 0.0
            # Less than before: the broker was emptied in between, and counts anew.
            is_anew = owner.worker_seconds < earlier
            spans[name] = owner.worker_seconds - (0.0 if is_anew else earlier)
        return _shares(spans)


@dataclass(frozen=True, slots=True, kw_only=True)
class MessagePosition:
    """Where a message is, and what stands before it. Says nothing else of other owners.

    `state` is ready, parked (behind a lock), delayed or leased. `place` counts from 1 inside its
    submission; `owners_before` is None while its owner may not be chosen.
    """

    state: str
    owner: str
    submission: str
    place: int | None = None
    of_submission: int = 0
    of_owner: int = 0
    running: int = 0
    max_running: int | None = None
    is_paused: bool = False
    rest_seconds: float | None = None
    owners_before: int | None = None
    due_seconds: float | None = None


def merged(snapshots: Iterable[OwnerSnapshot]) -> dict[str, OwnerSnapshot]:
    """Return one snapshot an owner, of what was seen of it in several queues."""
    found: dict[str, OwnerSnapshot] = {}
    for snapshot in snapshots:
        other = found.get(snapshot.name)
        found[snapshot.name] = snapshot if other is None else _both(other, snapshot)
    return found


def _both(one: OwnerSnapshot, other: OwnerSnapshot) -> OwnerSnapshot:
    return OwnerSnapshot(
        name=one.name,
        weight=one.weight,
        max_running=one.max_running,
        is_paused=one.is_paused,
        rate=one.rate,
        backlog=one.backlog + other.backlog,
        running=one.running + other.running,
        finished_count=one.finished_count + other.finished_count,
        worker_seconds=one.worker_seconds + other.worker_seconds,
        is_eligible=one.is_eligible or other.is_eligible,
        oldest_wait_seconds=_most(one.oldest_wait_seconds, other.oldest_wait_seconds),
        rest_seconds=_most(one.rest_seconds, other.rest_seconds),
    )


def _most(one: float | None, other: float | None) -> float | None:
    return max((value for value in (one, other) if value is not None), default=None)


def _shares(amounts: Mapping[str, float]) -> dict[str, float]:
    total = sum(amounts.values())
    return {name: amount / total if total else 0.0 for name, amount in amounts.items()}
