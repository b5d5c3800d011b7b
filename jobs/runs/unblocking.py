"""Unblocking: blocked runs get a new hint when their cap, lock, pause, or missing
worker or key allows it.

A row's `blocked_by` has the reason. When a run ends, runs that wait for its owner's cap or its
lock are published, as far as there is room; when a worker boots, runs of tasks that it knows.
The sweep does the same for all.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any, Final

from django.db import transaction

from jobs.core import log_events, prepared
from jobs.core.conf import setting
from jobs.core.states import ENDED, State
from jobs.rollouts import rounds
from jobs.runs.dispatch import publish_on_commit

logger = logging.getLogger(__name__)

CHUNK: Final = 1_000


def publish_after_end(rows: Sequence[Mapping[str, Any]]) -> None:
    """Publish runs that waited for these to end, and stop rollouts in which too many have failed.

    Takes rows with state, owner_id, rollout_id, lock_key, is_capped.

    Call it after the commit. An error is logged, and the sweep publishes them.
    """
    if stoppable := {row["rollout_id"] for row in rows if row["rollout_id"]}:
        rounds.examine(stoppable)
    freed = [row for row in rows if row["state"] in ENDED or row["state"] == State.RETRYING]
    owner_ids = sorted({row["owner_id"] for row in freed if row["is_capped"]})
    lock_keys = sorted({row["lock_key"] for row in freed if row["lock_key"]})
    if not owner_ids and not lock_keys:
        return
    try:
        publish_unblocked(owner_ids=owner_ids, lock_keys=lock_keys)
    except Exception:
        # Whatever it is, the caller's reports are recorded.
        log_events.UNBLOCKING_FAILED.log(logger, exc_info=True)


def publish_unblocked(*, owner_ids: list[int] | None, lock_keys: list[str] | None) -> int:
    """Publish what caps, locks and pauses (None: all) no longer block; return how many runs."""
    return _publish_all("runs/unblock", {"owners": owner_ids, "locks": lock_keys})


def publish_with_known_task(*, is_first_chunk_only: bool = False) -> int:
    """Publish runs whose task a live worker of their queue now knows; return how many."""
    return _publish_all("runs/unblock_known", {}, is_first_chunk_only=is_first_chunk_only)


def publish_with_known_key(*, is_first_chunk_only: bool = False) -> int:
    """Publish runs whose encryption key a live worker of their queue has; return how many."""
    return _publish_all("runs/unblock_key", {}, is_first_chunk_only=is_first_chunk_only)


def _publish_all(
    name: str, parameters: Mapping[str, Any], *, is_first_chunk_only: bool = False
) -> int:
    """Unblock and publish runs by a statement file, in chunks; return how many."""
    given = {**parameters, "most": CHUNK, "lease": setting("LEASE_SECONDS")}
    total = 0
    while True:
        with transaction.atomic():
            rows = prepared.run_over_all(name, given)
            publish_on_commit([row["id"] for row in rows])
        total += len(rows)
        if len(rows) < CHUNK or is_first_chunk_only:
            return total
