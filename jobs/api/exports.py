"""Exports: all runs of a filter, as NDJSON or CSV, sent while they are read.

They are read in chunks, so an export takes the same memory for ten runs as for ten million.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Final, Literal
from uuid import UUID

from django.http import HttpRequest, StreamingHttpResponse
from ninja import Query, Router
from pydantic import Field

from jobs.actions.filters.runs import RunFilter
from jobs.api.csv_cells import harmless
from jobs.api.kit.answers import sends_text
from jobs.api.kit.callers import caller, needs
from jobs.api.kit.streams import Stream, downloaded
from jobs.api.runs.reading import WITH, visible_runs
from jobs.api.runs.schemas import RunDetails, RunSummary
from jobs.models import Scope
from jobs.models.access import Access
from jobs.runs.reads.listing import UNLISTED

router = Router(tags=["exports"])
READS = needs(Scope.READ, "jobs.view_run")
CHUNK: Final = 500
CHUNK_WITH_ARGUMENTS: Final = 50
"""Runs of one read; arguments and results may have a megabyte each."""
UNSENT: Final = ("checkpoint", "looks", "history", "policy", "options")
"""Columns of which an export with arguments has nothing."""
MEDIA_TYPES: Final = {"ndjson": "application/x-ndjson", "csv": "text/csv; charset=utf-8"}
SENT: Final = sends_text("A run a line, newest first.", *MEDIA_TYPES.values())

Lines = Callable[[Sequence[dict[str, Any]]], bytes]


class ExportQuery(RunFilter):
    """The filters of an export, as those of the list, and its format."""

    format: Literal["ndjson", "csv"] = "ndjson"
    with_arguments: bool = Field(
        False, description="With arguments and results, as far as the caller may see them."
    )


@router.get("/runs", auth=READS, operation_id="export_runs", openapi_extra=SENT)
def export_runs(request: HttpRequest, query: Query[ExportQuery]) -> StreamingHttpResponse:
    """Send all runs of a filter, newest first; runs that are added meanwhile are not sent.

    NDJSON has an object a line. CSV has a header; a cell that a spreadsheet would take for a
    formula begins with an apostrophe.
    """
    access = caller(request)

    def parts(stream: Stream) -> Iterator[bytes]:
        lines: Lines = _csv(query) if query.format == "csv" else _ndjson
        return filter(None, map(lines, _chunks(stream, access, query)))

    return downloaded(
        request, parts, content_type=MEDIA_TYPES[query.format], name=f"runs.{query.format}"
    )


def _chunks(stream: Stream, access: Access, query: ExportQuery) -> Iterator[list[dict[str, Any]]]:
    """Yield the fields of runs; at first an empty list, so that a header is sent without runs."""
    yield []
    after: UUID | None = None
    while True:
        rows, after = stream.read(partial(_read_after, access, query, after))
        if rows:
            yield rows
        if after is None:
            return


def _read_after(
    access: Access, query: ExportQuery, after: UUID | None
) -> tuple[list[dict[str, Any]], UUID | None]:
    limit = CHUNK_WITH_ARGUMENTS if query.with_arguments else CHUNK
    hidden = UNSENT if query.with_arguments else UNLISTED
    shown: Any = RunDetails.of_run if query.with_arguments else RunSummary.of
    runs = visible_runs(access)
    found = query.newest(runs, access=access, after=after, limit=limit)
    rows = runs.filter(id__in=found.ids).select_related(*WITH).defer(*hidden).order_by("-id")
    return [shown(run, access).model_dump(mode="json") for run in rows], found.last


def _ndjson(rows: Sequence[dict[str, Any]]) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def _csv(query: ExportQuery) -> Lines:
    shown = RunDetails if query.with_arguments else RunSummary
    names = [*shown.model_fields]
    is_first = True

    def lines(rows: Sequence[dict[str, Any]]) -> bytes:
        nonlocal is_first
        text = io.StringIO()
        writer = csv.writer(text)
        if is_first:
            writer.writerow(names)
            is_first = False
        writer.writerows([harmless(row[name]) for name in names] for row in rows)
        return text.getvalue().encode()

    return lines
