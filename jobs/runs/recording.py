"""Recording: the second of the two modules that move a run's state.

All moves but admission: workers' reports, fenced by token, and moves of runs that no worker
holds. Losing a race is a normal return value: a run that is not in the answer was not moved.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import nullcontext
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.db import transaction

from fleet import Kind, Report, one_line
from jobs.core import log_events, prepared, sql
from jobs.core.apart import VALUE_ERRORS, apart, in_savepoint, name_spoilt
from jobs.core.conf import setting
from jobs.core.crypto import CLEAR, ERROR, Place, seal_texts
from jobs.core.states import State, sources
from jobs.runs import unblocking
from jobs.runs.celery_outcomes import notify_celery
from jobs.runs.dispatch import publish_on_commit
from jobs.runs.result_backend import STORED, as_stored
from jobs.runs.sealed_reports import sealed_reports, write_logs

logger = logging.getLogger(__name__)

LOST_CAUSES: Final = ("child lost", "time limit")
OUTCOME_REFUSED: Final = "OutcomeRefused"
"""The error of a run whose outcome PostgreSQL refuses."""
ERROR_LIMIT: Final = 1_000
"""Most characters of the error of a run whose row cannot be read."""
_SLUG: Final = """
SELECT o.slug FROM jobs_run r JOIN jobs_owner o ON o.id = r.owner_id WHERE r.id = %s
"""


def record(reports: Sequence[Report]) -> dict[str, str]:
    """Write a worker's reports; return the state that each run has now.

    A run is missing in the answer if its token is outdated: a later attempt counts. Its state is
    `busy` if another transaction has locked or just changed its row: report it again. Repeating a
    batch is harmless. A run whose row cannot be read ends; it is missing in the answer, too.
    """
    write_logs(reports)
    states: dict[str, str] = {}

    def refuse(report: Report, error: Exception) -> None:
        states.update(_refused(report, error))

    for part in apart(reports, _record, spoilt=refuse, errors=VALUE_ERRORS):
        states |= part
    return states


def _refused(report: Report, error: Exception) -> dict[str, str]:
    """Fail the run of a report that cannot be stored; end it, if its row takes no report."""
    if report.kind is Kind.STARTED:
        name_spoilt(logger, f"the start of run {report.run_id}", error)
        return {}
    text = f"its outcome cannot be stored: {type(error).__name__}"
    failed = Report(
        *(report.run_id, report.token, Kind.FAILED, time.monotonic()),
        error_type=OUTCOME_REFUSED,
        error_message=text,
    )
    try:
        with transaction.atomic():
            return _record([failed])
    except VALUE_ERRORS as again:
        end_unreadable(UUID(report.run_id), again)
        return {}


def _record(reports: Sequence[Report]) -> dict[str, str]:
    """Write reports in one statement; return states by run id."""
    lost = as_stored([report for report in reports if _is_lost(report)])
    stored = {report.run_id for report in lost if report.cause == STORED}
    # If nothing else follows, the one statement commits by itself.
    has_more = stored or any(report.kind is Kind.GIVEN_BACK for report in reports)
    with transaction.atomic() if has_more else nullcontext():
        rows = write([*(report for report in reports if not _is_lost(report)), *lost])
        publish_on_commit([row["id"] for row in rows if row["state"] == State.QUEUED])
        ended = [row["id"] for row in rows if str(row["id"]) in stored]
        transaction.on_commit(lambda: notify_celery(ended), robust=True)
    unblocking.publish_after_end(rows)
    return {str(row["id"]): row["state"] for row in rows}


def write(reports: Sequence[Report]) -> list[dict[str, Any]]:
    """Write reports, in one statement; return the rows that were moved."""
    merged = _merged(reports)
    if not merged:
        return []
    now = time.monotonic()
    ids = [UUID(report.run_id) for report in merged]
    # Nearly all batches have no details, such as errors.
    detailed = merged if any(map(_has_details, merged)) else []
    sealed = sealed_reports(merged)
    return prepared.run(
        "runs/record",
        ids,
        {
            "ids": sql.array(report.run_id for report in merged),
            "tokens": sql.array(report.token for report in merged),
            "started_ages": sql.array(_age(report.started_at, now) for report in merged),
            "kinds": sql.array(
                None if report.kind is Kind.STARTED else report.kind.value for report in merged
            ),
            "ended_ages": sql.array(_age(report.at, now) for report in merged),
            "results": sql.binaries(sealed.results),
            "error_types": [report.error_type for report in detailed],
            "error_messages": [] if sealed.key else [each.error_message for each in detailed],
            "tracebacks": [] if sealed.key else [each.traceback for each in detailed],
            "errors": sql.binaries(sealed.errors if detailed else ()),
            "attempt_errors": sql.binaries(sealed.attempt_errors if detailed else ()),
            "key": sealed.key,
            "delays": [report.delay for report in detailed],
            "causes": [report.cause for report in detailed],
            "lease": setting("LEASE_SECONDS"),
        },
    )


def move(
    run_ids: Sequence[UUID],
    *,
    to: State,
    cause: str = "",
    from_states: Collection[State] | None = None,
    is_fresh: bool = False,
) -> list[UUID]:
    """Move runs that no worker reports on; return the ids of those that were moved.

    Only moves of `jobs.core.states.MOVES` are made; `from_states` narrows them. With `is_fresh` a
    new set of attempts begins. Queued runs are published after commit. Call it in a transaction.
    """
    allowed = sources(to) if from_states is None else sources(to) & frozenset(from_states)
    rows = prepared.run(
        "runs/move",
        run_ids,
        {
            "ids": list(run_ids),
            "sources": [state.value for state in allowed],
            "target": to.value,
            "cause": cause,
            "is_fresh": is_fresh,
            "lease": setting("LEASE_SECONDS"),
        },
    )
    moved = [row["id"] for row in rows]
    if to is State.QUEUED:
        publish_on_commit(moved)
    return moved


def end_unreadable(run_id: UUID, error: Exception) -> None:
    """End an open run that no other statement can move, since raw SQL has spoilt its row.

    Otherwise each round would fail at it again, for ever.
    """
    text = f"the row of the run cannot be read: {type(error).__name__}: {one_line(error)}"
    with transaction.atomic():
        [owner] = sql.query(_SLUG, [run_id]) or [{"slug": ""}]
        place = Place(owner["slug"], run_id)
        message = text.replace("\x00", "")[:ERROR_LIMIT]
        sealed = seal_texts([message], field=ERROR, place=place)
        is_clear = sealed.key == CLEAR
        rows = sql.run(
            "runs/end_unreadable",
            {
                "id": run_id,
                "type": type(error).__name__,
                "message": message if is_clear else "",
                "data": None if is_clear else sealed.data,
                "key": sealed.key,
            },
        )
        ended = [row["id"] for row in rows]
        transaction.on_commit(lambda: notify_celery(ended), robust=True)
    for row in rows:
        facts = {"run_id": row["id"], "state": row["state"]}
        log_events.RUN_UNREADABLE.log(logger, error=one_line(error), exc_info=error, **facts)


def move_apart(run_ids: Sequence[UUID], act: Callable[[Sequence[UUID]], int]) -> int:
    """Move runs by `act`, which returns how many; end those whose row cannot be read.

    Call it in a transaction, in which the rows are locked.
    """
    return sum(apart(run_ids, in_savepoint(act), spoilt=end_unreadable))


def write_gates(
    gates: Sequence[tuple[UUID, datetime | None, datetime | None, str]],
) -> list[dict[str, Any]]:
    """Queue or hold waiting runs, by (id, when it opens or None, not after, cause).

    Returns the rows of apply_gate.sql. Call it in a transaction, and publish the hints.
    """
    ids, opens, not_afters, causes = (list(column) for column in zip(*gates, strict=True))
    return sql.run(
        "runs/apply_gate",
        {
            "ids": ids,
            "opens": opens,
            "not_afters": not_afters,
            "causes": causes,
            "lease": setting("LEASE_SECONDS"),
        },
    )


def _has_details(report: Report) -> bool:
    """Say whether a report has an error, a cause or a delay."""
    has_error = report.error_type or report.error_message or report.traceback or report.cause
    return bool(has_error) or report.delay is not None


def _is_lost(report: Report) -> bool:
    """Say whether the attempt's process died without a report of its own."""
    return report.kind in (Kind.RETRYING, Kind.FAILED) and report.cause in LOST_CAUSES


def _merged(reports: Iterable[Report]) -> list[Report]:
    """Return one report a run: the start and the end of an attempt are merged."""
    starts: dict[tuple[str, int], float] = {}
    newest: dict[str, Report] = {}
    for report in reports:
        if report.kind is Kind.STARTED:
            starts[report.run_id, report.token] = report.at
        kept = newest.get(report.run_id)
        if kept is None or _rank(kept) < _rank(report):
            newest[report.run_id] = report
    for run_id, report in newest.items() if starts else ():
        begun_at = starts.get((run_id, report.token))
        if begun_at is not None and report.started_at is None:
            newest[run_id] = report._replace(started_at=begun_at)
    return list(newest.values())


def _rank(report: Report) -> tuple[int, bool]:
    """Order reports of one run: the newest attempt last, an end after its start."""
    return report.token, report.kind is not Kind.STARTED


def _age(moment: float | None, now: float) -> float | None:
    """Return the seconds since a monotonic moment; PostgreSQL subtracts them from its clock."""
    return None if moment is None else max(0.0, now - moment)
