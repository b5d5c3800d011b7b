"""The log of a run: pages, a stream of events while it runs, and the whole as a file."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from functools import partial
from typing import Annotated, Final, Literal
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from ninja import Query, Schema
from pydantic import BaseModel, Field

from jobs.actions.texts import Text
from jobs.api.kit.answers import sends_text
from jobs.api.kit.callers import caller, forbidden
from jobs.api.kit.events import LastEventId, documented, event, watched
from jobs.api.kit.pages import Cursor, Page
from jobs.api.kit.problems import Problem
from jobs.api.kit.streams import Revoked, Stream, downloaded
from jobs.api.runs.reading import READS, find_run
from jobs.api.runs.router import router
from jobs.core.states import ENDED
from jobs.models import Run
from jobs.runs.reads.log import (
    FILE_TYPES,
    START,
    LogPage,
    Position,
    Wanted,
    as_facts,
    as_file,
    may_see,
    page_of,
)

LINES_OF_A_READ: Final = 500
WATCHED: Final = documented(
    "line",
    "An event `line` for each line, whose `data` has its fields, and one `end` when the run has "
    "ended, whose `data` has its state.",
)
SENT: Final = sends_text(
    "A line each, oldest first.", *(media_type for _suffix, media_type in FILE_TYPES.values())
)


class LogFilter(Schema):
    """Which lines."""

    attempt: int | None = Field(None, ge=1, le=2**31 - 1, description="The number of an attempt.")
    level: Literal["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"] = Field(
        "DEBUG", description="Lines of this level and above."
    )
    text: Annotated[Text, Field(max_length=200)] = Field(
        "", description="Lines with this text, in upper or lower case."
    )

    @property
    def wanted(self) -> Wanted:
        return Wanted(attempt=self.attempt, level=self.level, text=self.text)


class LineOfLog(BaseModel):
    """A line that a task has logged or printed."""

    attempt: int
    number: int = Field(description="Its place in the log of the attempt, from 1.")
    at: datetime = Field(description="By the worker's clock.")
    level: str
    logger: str = Field(description="`stdout` and `stderr`: the line was printed.")
    text: str
    left_out: int = Field(description="How many lines before it are not kept.")


class LinesOfLog(Schema):
    """A page of a log, oldest first."""

    items: list[LineOfLog]
    next: str = Field(description="The cursor of what follows, also of lines that come later.")
    has_more: bool = Field(description="False: no more lines for now.")


class LogFile(LogFilter):
    """Which lines, and how."""

    format: Literal["text", "ndjson"] = "text"


@router.get("/{uuid:run_id}/log", auth=READS, response=LinesOfLog, operation_id="list_lines_of_run")
def list_lines_of_run(
    request: HttpRequest, run_id: UUID, filters: Query[LogFilter], page: Page
) -> LinesOfLog:
    """Return lines that the task of a run has logged and printed, oldest first."""
    run = _readable(request, run_id)
    cursor = Cursor.read(request, page, of=f"log of {run_id}", filters=filters)
    after = Position.parsed(cursor.after) if cursor.after else START
    found = page_of(run, after=after, wanted=filters.wanted, most=cursor.limit)
    return LinesOfLog(
        items=[LineOfLog(**as_facts(line)) for line in found.lines],
        next=cursor.after_key(found.after),
        has_more=found.has_more,
    )


@router.get(
    "/{uuid:run_id}/log/events",
    auth=READS,
    operation_id="watch_lines_of_run",
    openapi_extra=WATCHED,
)
def watch_lines_of_run(
    request: HttpRequest,
    run_id: UUID,
    filters: Query[LogFilter],
    last_event_id: LastEventId = None,
) -> HttpResponseBase:
    """Send the lines of a run until it has ended, as Server-Sent Events.

    After `FAIRSHIFT_API_STREAM_SECONDS` the stream closes without `end`. Then connect again with
    `Last-Event-ID`, as browsers do automatically.
    """
    run = _readable(request, run_id)
    name = (last_event_id or "").removesuffix(" end")
    if name != (last_event_id or "") and run.state in ENDED:
        return HttpResponse(status=204)
    try:
        after = Position.parsed(name)
    except ValueError:
        after = START
    return watched(request, lambda stream: _news(stream, request, run_id, after, filters.wanted))


@router.get(
    "/{uuid:run_id}/log/file",
    auth=READS,
    operation_id="download_log_of_run",
    openapi_extra=SENT,
)
def download_log_of_run(
    request: HttpRequest, run_id: UUID, query: Query[LogFile]
) -> HttpResponseBase:
    """Send all lines of a run, as text or NDJSON."""
    run = _readable(request, run_id)
    suffix, media_type = FILE_TYPES[query.format]
    return downloaded(
        request,
        lambda stream: as_file(run, wanted=query.wanted, form=query.format, read=stream.read),
        content_type=media_type,
        name=f"{run_id}.{suffix}",
    )


def _readable(request: HttpRequest, run_id: UUID) -> Run:
    """Return a run whose log the caller may see; raise Problem for another one."""
    run = find_run(access := caller(request), run_id)
    if not may_see(run, access):
        raise forbidden("the permission jobs.view_arguments, and a token the scope 'operate'")
    return run


def _news(
    stream: Stream, request: HttpRequest, run_id: UUID, after: Position, wanted: Wanted
) -> Iterator[bytes | None]:
    """Yield an event for each line that the client does not have, and one for the end."""
    while True:
        run, page = stream.read(partial(_read_after, request, run_id, after, wanted))
        stream.release()
        after = page.after
        for line in page.lines:
            yield event("line", place=line.place, data=as_facts(line))
        if page.has_more:
            continue
        if run.state in ENDED:
            yield event("end", place=f"{after} end", data={"state": run.state})
            return
        yield None


def _read_after(
    request: HttpRequest, run_id: UUID, after: Position, wanted: Wanted
) -> tuple[Run, LogPage]:
    # The run first: its last lines are written before its end.
    try:
        run = _readable(request, run_id)
    except (Run.DoesNotExist, Problem):
        raise Revoked from None
    return run, page_of(run, after=after, wanted=wanted, most=LINES_OF_A_READ)
