"""What workers' reports bring, as it is stored: results, error texts and logs, encrypted."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import Final, NamedTuple
from uuid import UUID

from django.db import DatabaseError, connection, transaction

from fleet import LogChunk, Report
from jobs.core import crypto, log_events, prepared, sql
from jobs.core.crypto import CLEAR, ERROR, RESULT, Place, attempt_field, seal, seal_texts

logger = logging.getLogger(__name__)


class SealedReports(NamedTuple):
    """The columns of some reports, each with an element for each report."""

    key: int
    """The key of all three; 0: results are in clear, and no error is here."""
    results: Sequence[bytes | None]
    errors: Sequence[bytes | None] = ()
    """The error's message, for the run."""
    attempt_errors: Sequence[bytes | None] = ()
    """The message and the traceback, for the attempt."""


_NO_OWNERS: Final[Mapping[str, str]] = {}


def sealed_reports(reports: Sequence[Report]) -> SealedReports:
    """Return the results and errors to store for these reports."""
    ring = crypto.ring()
    if ring is None:
        return SealedReports(CLEAR, [report.result for report in reports])
    owners = _owners_of(reports)
    return SealedReports(
        ring.newest.id,
        [_result(report, owners) for report in reports],
        [_error(report, owners) for report in reports],
        [_attempt_error(report, owners) for report in reports],
    )


def _owners_of(reports: Sequence[Report]) -> Mapping[str, str]:
    """Return the slugs of the owners of runs with a result or an error, by the runs' ids."""
    ids = [UUID(each.run_id) for each in reports if each.result is not None or _has_error(each)]
    if not ids:
        return _NO_OWNERS
    rows = prepared.run("runs/owners_of", ids, {"ids": sql.array(ids)})
    return {str(row["id"]): row["owner"] for row in rows}


def _has_error(report: Report) -> bool:
    return bool(report.error_message or report.traceback)


def _result(report: Report, owners: Mapping[str, str]) -> bytes | None:
    place = _place(report, owners)
    if report.result is None or place is None:
        return None
    return seal(report.result, field=RESULT, place=place).data


def _error(report: Report, owners: Mapping[str, str]) -> bytes | None:
    place = _place(report, owners)
    if not report.error_message or place is None:
        return None
    return seal_texts([report.error_message], field=ERROR, place=place).data


def _attempt_error(report: Report, owners: Mapping[str, str]) -> bytes | None:
    place = _place(report, owners)
    if not _has_error(report) or place is None:
        return None
    texts = [report.error_message, report.traceback]
    return seal_texts(texts, field=attempt_field(report.token), place=place).data


def _place(report: Report, owners: Mapping[str, str]) -> Place | None:
    """Return what a report's texts are bound to; None for a run without a row."""
    owner = owners.get(report.run_id)
    return None if owner is None else Place(owner, UUID(report.run_id))


def write_logs(reports: Sequence[Report]) -> None:
    """Write the chunks of some reports, before their outcomes; repeating it is harmless.

    Raises the error of a lost connection, so that the caller repeats its batch. Others are logged.
    """
    found = [(report, chunk) for report in reports for chunk in report.log]
    if not found:
        return
    columns = sql.columns((chunk for _report, chunk in found), *LogChunk.__annotations__)
    named = {
        "ids": sql.array(report.run_id for report, _chunk in found),
        "tokens": sql.array(report.token for report, _chunk in found),
        "data": sql.binaries(columns.pop("data")),
        **{name: sql.array(values) for name, values in columns.items()},
    }
    ids = [UUID(report.run_id) for report, _chunk in found]
    try:
        with transaction.atomic() if connection.in_atomic_block else nullcontext():
            prepared.run("runs/record_log", ids, named)
    except (DatabaseError, ValueError) as error:
        if not connection.is_usable():
            raise
        log_events.RUN_LOG_NOT_WRITTEN.log(logger, run_id=found[0][0].run_id, error=error)
