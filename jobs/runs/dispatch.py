"""Dispatch: from committed rows to hints in the broker.

A run that becomes queued is written to the outbox in the same transaction. Its hint is published
after the commit, within a time limit; what fails stays in the outbox for the sweep. A hint may be
published twice: the row admits it once.
"""

from __future__ import annotations

import logging
import math
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from itertools import chain
from typing import Any, Final
from uuid import UUID

from celery import current_app
from django.db import connection, transaction

from fleet import Broker, BrokerUnavailable, Hint, Owners, crash_point, fair_queues
from jobs.core import log_events, prepared, sql
from jobs.core.apart import apart, in_savepoint, name_spoilt
from jobs.core.conf import setting

logger = logging.getLogger(__name__)

SLICE: Final = 1_000
DELETE_AT: Final = 50
"""Published single submits whose outbox rows are deleted together."""
DELETE_SECONDS: Final = 1.0
"""The same after this time: the sweep would publish older ones again."""
_DELETE: Final = """
DELETE FROM jobs_outbox USING (SELECT set_config('synchronous_commit', 'off', true)) AS unsynced
WHERE id = ANY(%s)
"""
_SHRINK: Final = """
UPDATE jobs_outbox SET run_ids = %s
FROM (SELECT set_config('synchronous_commit', 'off', true)) AS unsynced WHERE id = %s
"""

Read = Callable[[Sequence[UUID]], list[Hint]]


@cache
def broker() -> Broker:
    """This process's way to the broker."""
    return Broker(current_app._get_current_object())


def owners() -> Owners:
    """The owners of the fair queues, over this process's way to the broker."""
    return Owners(broker(), fair_queues(current_app))


def publish_on_commit(run_ids: Sequence[UUID], read: Read | None = None) -> None:
    """Put queued runs in the outbox and publish their hints once the transaction commits.

    `read` returns the hints of ids without reading the rows, if the caller knows them.
    """
    if not run_ids:
        return
    [row] = sql.query(
        "INSERT INTO jobs_outbox (run_ids, created_at) VALUES (%s, clock_timestamp()) RETURNING id",
        # As one text: psycopg is slow to adapt each element.
        ["{" + ",".join(map(str, run_ids)) + "}"],
    )
    # Robust: an error here must not look as if the caller's commit had failed.
    # No `partial`: Django logs the callback's `__qualname__`, which a partial lacks.
    transaction.on_commit(lambda: _publish_committed(run_ids, row["id"], read), robust=True)


def publish_hint_on_commit(hint: Hint, outbox_id: int) -> None:
    """Publish the hint of a run that is in the outbox, once the transaction commits; else now."""
    # The submits of a transaction are published together. Django drops the callbacks of a savepoint
    # that is rolled back: only hints of the same savepoints may share one.
    savepoints = set(connection.savepoint_ids)
    last = connection.run_on_commit[-1] if connection.run_on_commit else None
    if last is not None and last[0] == savepoints and isinstance(last[1], _Singles):
        last[1].each.append((hint, outbox_id))
    else:
        transaction.on_commit(_Singles([(hint, outbox_id)]), robust=True)


class _Singles:
    """The callback that publishes hints of single submits, with their outbox rows."""

    def __init__(self, each: list[tuple[Hint, int]]) -> None:
        self.each = each
        self.__qualname__ = type(self).__qualname__  # Django logs it

    def __call__(self) -> None:
        publish_singles(self.each)


def publish_singles(singles: Sequence[tuple[Hint, int]]) -> None:
    crash_point("dispatch.after_commit")
    hints = [hint for hint, _ in singles]
    crash_point("dispatch.before_publish")
    receipt = tuple(outbox_id for _, outbox_id in singles)
    try:
        arrived = broker().post(hints, receipt, timeout=setting("PUBLISH_TIMEOUT_SECONDS"))
    except BrokerUnavailable as error:
        log_events.HINTS_LEFT.log(logger, count=len(hints), error=error)
        return
    crash_point("dispatch.after_publish")
    now = time.monotonic()
    _published.extend((now, outbox_id) for outbox_id in chain.from_iterable(arrived))
    if done := _take_published(now):
        sql.query(_DELETE, [done])


_published: Final[deque[tuple[float, int]]] = deque()
"""Outbox rows of this process whose hints are in the broker, and since when that is known."""


def _take_published(now: float) -> list[int]:
    """Return rows to delete, if there are some for a while or many; the sweep deletes the others.

    Not in the statement of a submit: its plan for any number of rows would cost more than planning
    it each time.
    """
    taken = []
    with suppress(IndexError):  # another thread may take some
        if len(_published) >= DELETE_AT or _published[0][0] < now - DELETE_SECONDS:
            while True:
                taken.append(_published.popleft()[1])
    return taken


def _publish_committed(run_ids: Sequence[UUID], outbox_id: int, read: Read | None) -> None:
    crash_point("dispatch.after_commit")
    # For a large bulk the caller does not wait longer: the sweep publishes the rest.
    published = publish_slices(run_ids, seconds=setting("PUBLISH_TIMEOUT_SECONDS"), read=read)
    crash_point("dispatch.after_publish")
    shrink_outbox([(outbox_id, run_ids)], published=published)
    crash_point("dispatch.after_outbox_delete")


def publish_slices(
    run_ids: Sequence[UUID], *, seconds: float = math.inf, read: Read | None = None
) -> int:
    """Publish hints in slices, until the time is up or the broker fails.

    Returns how many of the runs, from the first one, have their hints in the broker.
    """
    until = time.monotonic() + seconds
    published = 0
    try:
        for start in range(0, len(run_ids), SLICE):
            publish(run_ids[start : start + SLICE], read, are_in_outbox=True)
            published = min(start + SLICE, len(run_ids))
            if time.monotonic() > until:
                break
    except BrokerUnavailable as error:
        log_events.HINTS_LEFT.log(logger, count=len(run_ids) - published, error=error)
    return published


def publish(
    run_ids: Sequence[UUID], read: Read | None = None, *, are_in_outbox: bool = False
) -> int:
    """Publish hints of these runs if they are queued; return how many. Raises BrokerUnavailable."""
    hints = (read or _hints)(run_ids)
    crash_point("dispatch.before_publish")
    if hints:
        timeout = setting("PUBLISH_TIMEOUT_SECONDS")
        broker().publish(hints, timeout=timeout, are_in_outbox=are_in_outbox)
    return len(hints)


def _hints(run_ids: Sequence[UUID]) -> list[Hint]:
    read = in_savepoint(_read_hints) if connection.in_atomic_block else _read_hints
    return [hint for part in apart(run_ids, read, spoilt=_leave_out) for hint in part]


def _read_hints(run_ids: Sequence[UUID]) -> list[Hint]:
    rows = prepared.run("runs/select_hints", run_ids, {"ids": list(run_ids)})
    return [Hint(**row) for row in rows]


def _leave_out(run_id: UUID, error: Exception) -> None:
    name_spoilt(logger, f"the hint of run {run_id}", error)


def withdraw_on_commit(rows: Iterable[Mapping[str, Any]]) -> None:
    """Take back the hints of runs, rows with id, token and queue, once the transaction commits."""
    by_queue: dict[str, list[tuple[str, int]]] = defaultdict(list)
    for row in rows:
        by_queue[row["queue"]].append((str(row["id"]), row["token"] + 1))
    if by_queue:
        transaction.on_commit(lambda: _withdraw(by_queue), robust=True)


def _withdraw(by_queue: Mapping[str, Sequence[tuple[str, int]]]) -> None:
    try:
        for queue, hints in by_queue.items():
            broker().withdraw(queue, hints, timeout=setting("PUBLISH_TIMEOUT_SECONDS"))
    except BrokerUnavailable as error:
        log_events.HINTS_NOT_WITHDRAWN.log(logger, error=error)


def shrink_outbox(batches: Iterable[tuple[int, Sequence[UUID]]], *, published: int) -> None:
    """Remove the first `published` runs of these batches, by id and runs, from the outbox.

    Not synced to disk, as a hint may be published again.
    """
    whole = []
    for batch_id, run_ids in batches:
        if published >= len(run_ids):
            whole.append(batch_id)
        elif published > 0:
            sql.query(_SHRINK, [list(run_ids[published:]), batch_id])
        published -= len(run_ids)
    if whole:
        sql.query(_DELETE, [whole])
