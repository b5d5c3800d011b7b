"""The states of a run and every move between them, in one table.

Pure. Two modules move a run. `jobs/runs/admission.py` moves it to `admitted`, or to `expired` or
`held` if its deadline or window has passed. `jobs/runs/recording.py` makes all other moves.
`docs/understand/states.md` draws this table.
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
    # Waiting runs are failed by an operator whose task is gone.
    S.SCHEDULED: frozenset({S.QUEUED, S.HELD, S.CANCELLED, S.EXPIRED, S.FAILED}),
    S.HELD: frozenset({S.QUEUED, S.SCHEDULED, S.CANCELLED, S.EXPIRED, S.FAILED}),
    # To scheduled: an operator has given it a later due time.
    S.QUEUED: frozenset({S.ADMITTED, S.SCHEDULED, S.HELD, S.CANCELLED, S.EXPIRED, S.FAILED}),
    # Back to queued: a worker that stops, or is too late to start it, gives it back.
    S.ADMITTED: frozenset({S.RUNNING, S.QUEUED, S.RETRYING, S.FAILED, S.CANCELLING, S.CANCELLED}),
    S.RUNNING: frozenset({S.SUCCEEDED, S.FAILED, S.RETRYING, S.CANCELLING, S.CANCELLED}),
    # A task that is asked to stop may succeed first.
    S.CANCELLING: frozenset({S.CANCELLED, S.SUCCEEDED}),
    # Not to expired: it has started before its deadline.
    S.RETRYING: frozenset({S.QUEUED, S.HELD, S.CANCELLED, S.FAILED}),
    # An operator's retry reopens an ended run, unless it succeeded.
    S.FAILED: frozenset({S.QUEUED}),
    S.CANCELLED: frozenset({S.QUEUED}),
    S.EXPIRED: frozenset({S.QUEUED}),
    S.SUCCEEDED: frozenset(),
}

FIRST: Final = frozenset({S.SCHEDULED, S.HELD, S.QUEUED})
"""States in which a run may be stored."""

WAITING: Final = frozenset({S.SCHEDULED, S.HELD, S.QUEUED, S.RETRYING})
"""No worker has it: a cancel ends it at once."""

DELAYED: Final = frozenset({S.SCHEDULED, S.HELD, S.RETRYING})
"""`jobs/system/promotion.py` queues these when they are due."""

ACTIVE: Final = frozenset({S.ADMITTED, S.RUNNING, S.CANCELLING})
"""A worker has it, under the newest token."""

ENDED: Final = frozenset({S.SUCCEEDED, S.FAILED, S.CANCELLED, S.EXPIRED})
REOPENABLE: Final = frozenset(state for state in ENDED if S.QUEUED in MOVES[state])


def sources(target: State) -> frozenset[State]:
    """Return every state from which a run may move to `target`."""
    return frozenset(state for state, targets in MOVES.items() if target in targets)
