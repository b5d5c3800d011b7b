"""Unblocking: runs that wait for a cap, a lock, the end of a pause or a worker get a hint again.

A refused hint is dropped, and the row remembers why (`blocked_by`). When a run ends, those
that waited for its owner's cap or for its lock are published, as many as there is now room
for; when a worker boots, those that waited for one that knows their task. The sweep does the same
for all, should a worker die in between.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Any, Final

from django.db import transaction

from jobs.core import prepared
from jobs.core.conf import setting
from jobs.core.states import ENDED, State
from jobs.runs.dispatch import publish_on_commit

logger = logging.getLogger(__name__)

CHUNK: Final = 1_000


def publish_after_end(rows: Iterable[Mapping[str, Any]]) -> None:
    """Publish what waited for these runs to end: rows with state, owner_id, lock_key, is_capped.

    Called after the commit of that end, which no trouble here may put in doubt: it is logged,
    and the sweep frees them.
    """
    freed = [row for row in rows if row["state"] in ENDED or row["state"] == State.RETRYING]
    owner_ids = sorted({row["owner_id"] for row in freed if row["is_capped"]})
    lock_keys = sorted({row["lock_key"] for row in freed if row["lock_key"]})
    if not owner_ids and not lock_keys:
        return
    try:
        publish_unblocked(owner_ids=owner_ids, lock_keys=lock_keys)
    except Exception:
        # Whatever the database raised: the caller's reports are recorded.
        logger.exception("what waited for a cap or a lock is left to the sweep")


def publish_unblocked(*, owner_ids: list[int] | None, lock_keys: list[str] | None) -> int:
    """Publish blocked runs whose cap, lock or pause lets them go; return how many.

    None means: of every owner, every lock.
    """
    return _publish_all("runs/unblock", {"owners": owner_ids, "locks": lock_keys})


def publish_with_known_task(*, is_first_chunk_only: bool = False) -> int:
    """Publish blocked runs whose task a live worker of their queue knows now; return how many."""
    return _publish_all("runs/unblock_known", {}, is_first_chunk_only=is_first_chunk_only)


def _publish_all(
    name: str, parameters: Mapping[str, Any], *, is_first_chunk_only: bool = False
) -> int:
    """Free and publish runs by a statement file, chunk by chunk; return how many."""
    given = {**parameters, "most": CHUNK, "lease": setting("LEASE_SECONDS")}
    total = 0
    while True:
        with transaction.atomic():
            rows = prepared.run_over_all(name, given)
            publish_on_commit([row["id"] for row in rows])
        total += len(rows)
        if len(rows) < CHUNK or is_first_chunk_only:
            return total
