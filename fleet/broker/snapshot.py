"""Snapshots of owners in the fair queues, and their shares. Pure.

A share is a part of 1. The entitled share depends on one moment: an owner's weight among those with
work. The received share depends on two snapshots: the worker time that ended between them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum


class OwnerState(StrEnum):
    """Whether an owner may be chosen, or why not."""

    ELIGIBLE = "eligible"
    AT_CAP = "at cap"
    PAUSED = "paused"
    RESTING = "resting"  # over its rate
    IDLE = "idle"  # nothing of it is ready


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerSnapshot:
    """One owner at one moment, summed over fair queues.

    `running` counts leases that have not finished; `worker_seconds` is the run time of all that
    have. None means no limit, no waiting message, or an owner within its rate.
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
        """Whether it shares the workers: something runs, or waits and is not paused."""
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

    def waited(self) -> dict[str, float]:
        """Return the owners with work, with the seconds for which their oldest message waits."""
        return {
            name: owner.oldest_wait_seconds or 0.0
            for name, owner in self.owners.items()
            if owner.has_work
        }

    def received(self, *, since: Snapshot | None = None) -> dict[str, float]:
        """Return each owner's share of the worker time that ended since a snapshot, or at all.

        All shares are 0 if none ended.
        """
        before = {} if since is None else since.owners
        spans = {}
        for name, owner in self.owners.items():
            earlier = before[name].worker_seconds if name in before else 0.0
            # Less than before: the broker was emptied in between.
            is_anew = owner.worker_seconds < earlier
            spans[name] = owner.worker_seconds - (0.0 if is_anew else earlier)
        return _shares(spans)


@dataclass(frozen=True, slots=True, kw_only=True)
class MessagePosition:
    """A message's position, without facts about other owners.

    `state` is ready, parked (behind a lock), delayed or leased. `place` counts from 1 within its
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
    """Return one snapshot for each owner, summed over queues."""
    found: dict[str, OwnerSnapshot] = {}
    for snapshot in snapshots:
        other = found.get(snapshot.name)
        found[snapshot.name] = snapshot if other is None else _both(other, snapshot)
    return found


def _both(one: OwnerSnapshot, other: OwnerSnapshot) -> OwnerSnapshot:
    return replace(
        one,
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
