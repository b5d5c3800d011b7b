"""The judge's own copy of the allowed moves, written from the design and not from the code.

"new" is before the first entry. An operator's retry is the only way out of an ended state.
"""

MOVES: dict[str, frozenset[str]] = {
    "new": frozenset({"scheduled", "held", "queued"}),
    # To failed, of what waits: an operator fails the runs of a task that is gone.
    "scheduled": frozenset({"queued", "held", "cancelled", "expired", "failed"}),
    "held": frozenset({"queued", "scheduled", "cancelled", "expired", "failed"}),
    "queued": frozenset({"admitted", "scheduled", "held", "cancelled", "expired", "failed"}),
    # To queued: given back before its start. To failed: lost before its start, for the last time.
    "admitted": frozenset({"running", "queued", "retrying", "failed", "cancelling", "cancelled"}),
    "running": frozenset({"succeeded", "failed", "retrying", "cancelling", "cancelled"}),
    "cancelling": frozenset({"cancelled", "succeeded"}),
    "retrying": frozenset({"queued", "held", "cancelled", "failed"}),
    "succeeded": frozenset(),
    "failed": frozenset({"queued"}),
    "cancelled": frozenset({"queued"}),
    "expired": frozenset({"queued"}),
}

OPERATORS_RETRY_FROM = frozenset({"failed", "cancelled", "expired"})
