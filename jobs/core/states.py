"""The states of a run and every move between them, in one table.

Pure. Two doors move a run: `jobs/runs/admission.py` makes the moves into `admitted`
(and `expired`, when it meets a run whose deadline has passed), `jobs/runs/recording.py`
makes all others. `docs/understand/states.md` draws this table.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class State(StrEnum):
    SCHEDULED = "scheduled"
    HELD = "held"
    QUEUED = "queued"
    ADMITTED = "admitted"
    RUNNING = "running"
    CANCELLING = "cancelling"
    RETRYING = "retrying"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    EXPIRED = "expired"


S = State

MOVES: Final[dict[State, frozenset[State]]] = {
    # Failed unstarted: by an operator, when its task is gone.
    S.SCHEDULED: frozenset({S.QUEUED, S.HELD, S.CANCELLED, S.EXPIRED, S.FAILED}),
    S.HELD: frozenset({S.QUEUED, S.SCHEDULED, S.CANCELLED, S.EXPIRED, S.FAILED}),
    S.QUEUED: frozenset({S.ADMITTED, S.HELD, S.CANCELLED, S.EXPIRED, S.FAILED}),
    # Back to queued: a worker that stops, or a start deadline that passed, gives it back unstarted.
    S.ADMITTED: frozenset({S.RUNNING, S.QUEUED, S.RETRYING, S.FAILED, S.CANCELLING, S.CANCELLED}),
    S.RUNNING: frozenset({S.SUCCEEDED, S.FAILED, S.RETRYING, S.CANCELLING, S.CANCELLED}),
    # Asked to stop, a task may still finish first: the outcome then stands.
    S.CANCELLING: frozenset({S.CANCELLED, S.SUCCEEDED}),
    # It has started before, so its deadline, which is one for the start, is kept.
    S.RETRYING: frozenset({S.QUEUED, S.HELD, S.CANCELLED, S.FAILED}),
    # An operator's retry opens an ended run again; what succeeded stays so.
    S.FAILED: frozenset({S.QUEUED}),
    S.CANCELLED: frozenset({S.QUEUED}),
    S.EXPIRED: frozenset({S.QUEUED}),
    S.SUCCEEDED: frozenset(),
}

FIRST: Final = frozenset({S.SCHEDULED, S.HELD, S.QUEUED})
"""States in which a run may be stored."""

WAITING: Final = frozenset({S.SCHEDULED, S.HELD, S.QUEUED, S.RETRYING})
"""Nobody works on it: a cancel ends it at once."""

DELAYED: Final = frozenset({S.SCHEDULED, S.HELD, S.RETRYING})
"""`jobs/system/promotion.py` queues these when their time has come."""

ACTIVE: Final = frozenset({S.ADMITTED, S.RUNNING, S.CANCELLING})
"""A worker holds it under the newest token."""

ENDED: Final = frozenset({S.SUCCEEDED, S.FAILED, S.CANCELLED, S.EXPIRED})
REOPENABLE: Final = frozenset(state for state in ENDED if S.QUEUED in MOVES[state])


def sources(target: State) -> frozenset[State]:
    """Return every state from which a run may move to `target`."""
    return frozenset(state for state, targets in MOVES.items() if target in targets)
