"""Results and error texts of workers' reports, as they are stored: encrypted with a key ring."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple
from uuid import UUID

from fleet import Report
from jobs.core import crypto, prepared, sql
from jobs.core.crypto import CLEAR, ERROR, RESULT, Place, attempt_field, seal, seal_texts


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
