"""Whether anything has changed since an earlier look, without reading any row."""

from __future__ import annotations

from typing import Final

from django.db import connection

from fleet import BrokerUnavailable
from jobs.core import sql
from jobs.core.conf import setting
from jobs.models import Cursor, Leader, Worker
from jobs.models.recurring import Tick
from jobs.models.rollup import RollupPosition
from jobs.runs.dispatch import owners

UNREAD: Final = [Tick._meta.db_table]
"""Tables to which an idle installation adds rows. What pages find by them changes by time alone."""
BEATING: Final = [model._meta.db_table for model in (Worker, Cursor, Leader, RollupPosition)]
"""Tables whose rows an idle installation updates every few seconds."""
UNCOUNTED: Final = "sleeping"
"""Workers that wait for a message at this moment: it changes while nothing happens."""


def changes() -> str | None:
    """Return a text that is another one after any change in PostgreSQL or in the fair queues.

    Take it before the rows are read. A change is seen at most 10 s after its commit, usually within
    one. Updates of BEATING are not seen, and neither is what changes by time alone. None: it cannot
    be said. Call it with the barrier lifted.
    """
    # PostgreSQL counts what this transaction has changed at its end.
    if connection.in_atomic_block:
        return None
    [row] = sql.run("system/changes", {"unread": UNREAD, "beating": BEATING})
    return None if row["changes"] is None else f"{row['changes']} {_queues()}"


def _queues() -> str:
    timeout = setting("PUBLISH_TIMEOUT_SECONDS")
    try:
        found = [owners().counters(queue, timeout=timeout) for queue in owners().queues]
    except BrokerUnavailable:
        return "away"
    counted = [{name: each[name] for name in each if name != UNCOUNTED} for each in found]
    return str([sorted(each.items()) for each in counted])
