"""Cancel or retry all runs of a search: found first, then moved in chunks, audited as a whole."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Final, NamedTuple
from uuid import UUID

from jobs.core.errors import StateConflict
from jobs.core.inputs import REASON_LIMIT, refuse_text
from jobs.core.states import ENDED, REOPENABLE, State
from jobs.models import AuditEntry, Owner
from jobs.models.run import RunQuerySet
from jobs.models.verbs import Actor
from jobs.runs.cancellation import cancel_runs
from jobs.runs.manual_retry import reopen_runs

CHUNK: Final = 1_000
MOST: Final = 100_000
"""Runs that one call finds; a repetition finds the next ones."""
BUDGET_SECONDS: Final = 20.0
"""Seconds after which no further chunk is begun: a request must end."""

CANCELLABLE: Final = frozenset(State) - ENDED - {State.CANCELLING}


class Found(NamedTuple):
    """A run to be moved, and its owner."""

    run_id: UUID
    owner_id: int


class Moved(NamedTuple):
    """The effect of a bulk."""

    moved: int
    left: int
    """Runs that were not reached in time; a repetition moves them."""


def find_cancellable(runs: RunQuerySet) -> list[Found]:
    """Return the runs of a search that a cancel would move, oldest first, at most MOST."""
    return _find(runs, CANCELLABLE)


def find_reopenable(runs: RunQuerySet) -> list[Found]:
    """Return the runs of a search that a retry would move, oldest first, at most MOST."""
    return _find(runs, REOPENABLE)


def cancel_found(found: Sequence[Found], *, actor: Actor = None, reason: str = "") -> Moved:
    """Cancel these runs; return how many moved. Raises OptionError if the reason is too long."""
    return _move(found, cancel_runs, "cancel runs", actor=actor, reason=reason)


def retry_found(found: Sequence[Found], *, actor: Actor = None, reason: str = "") -> Moved:
    """Queue these runs again; return how many moved. Raises OptionError as `cancel_found` does."""
    return _move(found, reopen_runs, "retry runs", actor=actor, reason=reason)


def _find(runs: RunQuerySet, states: Iterable[State]) -> list[Found]:
    rows = runs.filter(state__in=sorted(states)).order_by("id").values_list("id", "owner_id")
    return [Found(*row) for row in rows[:MOST]]


def _move(
    found: Sequence[Found],
    verb: Callable[..., list[UUID]],
    action: str,
    *,
    actor: Actor,
    reason: str,
) -> Moved:
    refuse_text("reason", reason, most=REASON_LIMIT)
    for owner_id, matched in Counter(one.owner_id for one in found).items():
        owner = Owner.objects.get(pk=owner_id)
        AuditEntry.write(action, on=owner, actor=actor, reason=reason, matched=matched)
    until = time.monotonic() + BUDGET_SECONDS
    moved = 0
    for start in range(0, len(found), CHUNK):
        if time.monotonic() > until:
            return Moved(moved, len(found) - start)
        ids = [one.run_id for one in found[start : start + CHUNK]]
        # The only run of a chunk may have been moved by another caller meanwhile.
        with suppress(StateConflict):
            moved += len(verb(ids, reason=reason))
    return Moved(moved, 0)
