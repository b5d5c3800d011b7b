"""Ends of runs and submissions, for those who listen: hooks, webhooks.

A listener has a name. While it listens, the statement that ends a run also writes a row of
`jobs_end` for it (`jobs/runs/sql/announce.sql`); without a listener, that is one look at an empty
table for each batch. `take` deletes these rows in the caller's transaction, in which the caller
stores what it will deliver. So no end is lost, and none is handed over twice:

    with transaction.atomic():
        found = ends.take("webhooks")
        ...insert one delivery for each of found.runs and found.submissions

Runs of jobs with `history="none"` have no row, and no ends here.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.db import connection

from jobs.catalog.ends import RunEnd, SubmissionEnd
from jobs.core import log_events, sql
from jobs.core.states import ENDED, State
from jobs.models import EndListener

logger = logging.getLogger(__name__)

MOST: Final = 500
"""Ends that are taken at once."""
SILENT_DAYS: Final = 7
"""Days after which a listener that takes nothing is removed, with its ends and marks."""
BATCH: Final = 50_000
"""Most rows that one statement deletes."""
DELETE_SECONDS: Final = 60.0
"""Seconds after which no further batch of a kind of rows is deleted: the next call goes on."""

# Not in each round: the row would be written again and again.
_TAKEN: Final = """
UPDATE jobs_endlistener SET taken_at = clock_timestamp()
WHERE name = %s AND taken_at < clock_timestamp() - interval '1 minute'
"""
_LISTEN: Final = """
INSERT INTO jobs_endlistener (name, owner_id) VALUES (%s, %s) ON CONFLICT DO NOTHING
"""
_ANY: Final = """
SELECT EXISTS (SELECT FROM jobs_end WHERE listener = %(listener)s)
    OR EXISTS (SELECT FROM jobs_endmark WHERE listener = %(listener)s AND waits)
    OR NOT EXISTS (SELECT FROM jobs_endlistener WHERE name = %(listener)s
        AND taken_at > clock_timestamp() - interval '1 hour') AS found
"""
_SILENT: Final = """
DELETE FROM jobs_endlistener WHERE taken_at < clock_timestamp() - make_interval(days => %s)
RETURNING name
"""
_DELETE: Final = """
WITH gone AS (
    DELETE FROM {table} WHERE ctid = ANY(ARRAY(
        SELECT x.ctid FROM {table} x WHERE {condition} LIMIT %(most)s))
    RETURNING 1)
SELECT count(*) AS count FROM gone
"""
_LEFT: Final = "NOT EXISTS (SELECT FROM jobs_endlistener l WHERE l.name = x.listener)"
_OLD: Final = "x.checked_at < clock_timestamp() - make_interval(days => %(days)s) AND NOT x.waits"
_SUBMISSIONS: Final = """
SELECT s.id, s.owner_id, o.slug AS owner, s.task, s.label, r.state, r.count, r.ended_at
FROM jobs_submission s
JOIN jobs_owner o ON o.id = s.owner_id
CROSS JOIN LATERAL (
    SELECT state, count(*) AS count, max(ended_at) AS ended_at FROM jobs_run
    WHERE submission_id = s.id GROUP BY state OFFSET 0
) AS r
WHERE s.id = ANY(%s) ORDER BY s.id
"""


@dataclass(frozen=True, slots=True)
class Ends:
    """What a listener has taken. A submission's end comes with or after those of its runs."""

    runs: Sequence[RunEnd]
    submissions: Sequence[SubmissionEnd]
    is_full: bool
    """As many were taken as asked for: there may be others."""


def listen(name: str, *, owner_id: int = EndListener.ALL) -> None:
    """Record ends of an owner's runs, or all owners', for a listener; repeating it is harmless.

    In the caller's transaction: ends that are committed after it are recorded.
    """
    sql.query(_LISTEN, [name, owner_id])


def unlisten(name: str, *, owner_id: int = EndListener.ALL) -> None:
    """End that. Ends that were recorded stay, and can be taken."""
    EndListener.objects.filter(name=name, owner_id=owner_id).delete()


def is_take_due(name: str) -> bool:
    """Say whether there are ends to take, or the listener is missing or has long taken nothing."""
    return bool(sql.query(_ANY, {"listener": name})[0]["found"])


def take(name: str, *, most: int = MOST) -> Ends:
    """Take the oldest ends of a listener: with the caller's commit they are gone.

    Call it in a transaction. A submission's end may, seldom, be there twice.
    """
    if not connection.in_atomic_block:
        raise RuntimeError("take() needs a transaction, in which its ends are stored elsewhere")
    sql.query(_TAKEN, [name])
    rows = sql.run("system/take_ends", {"listener": name, "most": most})
    # In a statement of its own, whose snapshot has all runs whose ends were just taken.
    return Ends(
        [_run_end(row) for row in rows], _ended_submissions(name, rows), is_full=len(rows) == most
    )


def remove_silent() -> list[str]:
    """Remove listeners that have taken nothing for SILENT_DAYS, and old marks; return their names.

    Their code may be gone: ends would be recorded for them for ever. Rows are deleted in batches.
    """
    names = sorted({row["name"] for row in sql.query(_SILENT, [SILENT_DAYS])})
    for name in names:
        log_events.LISTENER_REMOVED.log(logger, listener=name, days=SILENT_DAYS)
    _delete("jobs_end", _LEFT)
    _delete("jobs_endmark", _LEFT)
    _delete("jobs_endmark", _OLD)
    return names


def _delete(table: str, condition: str) -> None:
    """Delete rows batch by batch, each by a transaction of its own, for a limited time."""
    until = time.monotonic() + DELETE_SECONDS
    statement = _DELETE.format(table=table, condition=condition)
    while True:
        [gone] = sql.query(statement, {"most": BATCH, "days": SILENT_DAYS})
        if gone["count"] < BATCH or time.monotonic() >= until:
            return


def _run_end(row: Mapping[str, Any]) -> RunEnd:
    return RunEnd(
        run_id=row["run_id"],
        owner=row["owner"] or "",
        owner_id=row["owner_id"],
        task=row["task"] or "",
        job_id=row["job_id"],
        submission_id=row["submission_id"],
        state=State(row["state"]),
        ended_at=row["ended_at"],
        attempt=row["attempt"] or 0,
        error_type=row["error_type"] or "",
        labels=row["labels"] or {},
    )


def _ended_submissions(name: str, rows: Sequence[Mapping[str, Any]]) -> list[SubmissionEnd]:
    newest: dict[int, datetime] = {}
    for row in rows:
        if row["submission_id"] is not None:
            known = newest.get(row["submission_id"])
            newest[row["submission_id"]] = max(known or row["recorded_at"], row["recorded_at"])
    marked = sql.run(
        "system/mark_ended_submissions",
        {
            "listener": name,
            "submissions": list(newest),
            "recorded": list(newest.values()),
            "open_states": [state.value for state in State if state not in ENDED],
        },
    )
    found: dict[int, list[dict[str, Any]]] = {}
    for row in sql.query(_SUBMISSIONS, [[row["id"] for row in marked]]) if marked else ():
        found.setdefault(row["id"], []).append(row)
    # One that an operator has retried since the mark will end again.
    return [
        _submission_end(states)
        for states in found.values()
        if all(row["state"] in ENDED for row in states)
    ]


def _submission_end(states: Sequence[Mapping[str, Any]]) -> SubmissionEnd:
    first = states[0]
    return SubmissionEnd(
        submission_id=first["id"],
        owner=first["owner"],
        owner_id=first["owner_id"],
        task=first["task"],
        label=first["label"],
        counts={State(row["state"]): row["count"] for row in states},
        ended_at=max(row["ended_at"] for row in states),
    )
