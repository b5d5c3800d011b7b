"""Move all rows of a filter: found first, then moved in chunks, audited as a whole."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple
from uuid import UUID

from django.db.models import QuerySet

from jobs.core.errors import StateConflict
from jobs.core.inputs import REASON_LIMIT, refuse_text
from jobs.core.states import ENDED, State
from jobs.models import AuditEntry, Owner, Run, Submission
from jobs.models.verbs import Actor
from jobs.runs.cancellation import cancel_runs
from jobs.runs.manual_retry import reopen_runs

CHUNK: Final = 1_000
MOST: Final = 100_000
"""Rows that one call finds; a repetition finds the next ones."""
BUDGET_SECONDS: Final = 20.0
"""Seconds after which no further chunk is begun: a request must end."""

CANCELLABLE: Final = frozenset(State) - ENDED - {State.CANCELLING}


class OwnedKey(NamedTuple):
    """A row to be moved, and its owner; None: the row belongs to the installation."""

    pk: Any
    owner_id: int | None


class Moved(NamedTuple):
    """The effect on many rows."""

    moved: int
    left: int
    """Rows that were not reached in time; a repetition moves them."""
    refusal: str = ""
    """The first refusal of a row."""


def find(rows: QuerySet[Any], *, owner: str | None = "owner") -> list[OwnedKey]:
    """Return these rows in the order of their keys, at most MOST; `owner` is the path to it."""
    keys = rows.order_by("pk").values_list("pk", *([owner] if owner else []))
    return [OwnedKey(row[0], row[1] if owner else None) for row in keys[:MOST]]


def cancel_found(found: Sequence[OwnedKey], *, actor: Actor = None, reason: str = "") -> Moved:
    """Cancel these runs; return how many moved. Raises OptionError if the reason is too long."""
    _audit("cancel runs", found, actor=actor, reason=reason)
    return in_chunks(found, lambda ids: len(cancel_runs(ids, reason=reason)))


def retry_found(found: Sequence[OwnedKey], *, actor: Actor = None, reason: str = "") -> Moved:
    """Queue these runs again; return how many moved. Raises OptionError as `cancel_found` does."""
    _audit("retry runs", found, actor=actor, reason=reason)
    return in_chunks(found, lambda ids: len(reopen_runs(ids, reason=reason)))


def reopen_failed(submission: Submission, *, actor: Actor = None, reason: str = "") -> Moved:
    """Queue a submission's failed runs again; return how many, and how many are left."""
    failed = Run.objects.filter(submission=submission, state=State.FAILED).order_by("pk")
    # The limit MOST does not apply: a rollout continues only when it has no failed run.
    found = [OwnedKey(pk, None) for pk in failed.values_list("pk", flat=True)]
    AuditEntry.write(
        "retry failed runs", on=submission, actor=actor, reason=reason, matched=len(found)
    )
    return in_chunks(found, lambda ids: len(reopen_runs(ids, reason=reason)))


def in_chunks(found: Sequence[OwnedKey], move: Callable[[list[UUID]], int]) -> Moved:
    """Move runs in chunks until BUDGET_SECONDS; `move` returns how many of a chunk moved."""
    until = time.monotonic() + BUDGET_SECONDS
    moved = 0
    for start in range(0, len(found), CHUNK):
        if start and time.monotonic() > until:
            return Moved(moved, len(found) - start)
        # The only run of a chunk may have been moved by another caller meanwhile.
        with suppress(StateConflict):
            moved += move([one.pk for one in found[start : start + CHUNK]])
    return Moved(moved, 0)


def _audit(action: str, found: Sequence[OwnedKey], *, actor: Actor, reason: str) -> None:
    """Write an entry for each owner, with the number of its runs that were found."""
    refuse_text("reason", reason, most=REASON_LIMIT)
    matches = Counter(one.owner_id for one in found if one.owner_id is not None)
    for owner in Owner.objects.filter(pk__in=matches):
        AuditEntry.write(action, on=owner, actor=actor, reason=reason, matched=matches[owner.pk])
