"""The work of owners now: what runs, waits and is held, and which share they are entitled to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from fleet import OwnerSnapshot, OwnerState
from jobs.core.states import ACTIVE, State
from jobs.models import Owner
from jobs.owners.standing import snapshot
from jobs.runs.reads.counts import states_by

WAITING: Final = frozenset({State.QUEUED, State.HELD, State.FAILED})
"""States that are counted apart from the active ones: they may be too many to count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerWork:
    """The work of an owner now. None: too many to count, or Redis is away."""

    running: int | None
    queued: int | None
    held: int | None
    failed: int | None
    state: OwnerState | None
    """Whether the fair queues may choose it next, or why not."""
    oldest_wait_seconds: float | None
    """How long its oldest run has waited in the fair queues; None if no run waits there."""
    rest_seconds: float | None
    """Until its rate lets it start again."""
    entitled: float | None
    """Its part by weight among the owners that have work now; 0: it has none."""


def work_of(owners: Sequence[Owner]) -> dict[int, OwnerWork]:
    """Return the work of owners, by their ids: two counts and one question to Redis for all."""
    keys = [owner.pk for owner in owners]
    active = states_by("owner", keys, states=ACTIVE)
    waiting = states_by("owner", keys, states=WAITING)
    queues = snapshot()
    known = None if queues is None else queues.owners
    entitled = None if queues is None else queues.entitled()
    found = {}
    for owner in owners:
        running = None if active is None else sum(active.get(owner.pk, {}).values())
        mine = None if waiting is None else waiting.get(owner.pk, {})
        seen = None if known is None else known.get(owner.slug)
        found[owner.pk] = OwnerWork(
            running=running,
            queued=_of(mine, State.QUEUED),
            held=_of(mine, State.HELD),
            failed=_of(mine, State.FAILED),
            state=_state(owner, seen, running=running, is_known=known is not None),
            oldest_wait_seconds=None if seen is None else seen.oldest_wait_seconds,
            rest_seconds=None if seen is None else seen.rest_seconds,
            entitled=None if entitled is None else entitled.get(owner.slug, 0.0),
        )
    return found


def _of(counts: Mapping[State, int] | None, state: State) -> int | None:
    return None if counts is None else counts.get(state, 0)


def _state(
    owner: Owner, seen: OwnerSnapshot | None, *, running: int | None, is_known: bool
) -> OwnerState | None:
    # The rows are the truth: the queues learn of a pause or a limit a moment later.
    if owner.is_paused():
        return OwnerState.PAUSED
    if owner.max_running is not None and (running or 0) >= owner.max_running:
        return OwnerState.AT_CAP
    if not is_known:
        return None
    return OwnerState.IDLE if seen is None else seen.state
