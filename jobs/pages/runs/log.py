"""The log of a run: the card on its page, new lines for it, and the whole as a file."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from django.http import HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.template.loader import render_to_string
from django.utils import timezone
from django.utils.http import urlencode

from jobs.actions import find
from jobs.actions.runs import RUNS
from jobs.core.states import ENDED
from jobs.models import Run
from jobs.pages.kit.errors import forbidden
from jobs.pages.kit.visit import Visit, page
from jobs.runs.reads.log import (
    FILE_TYPES,
    START,
    LogLine,
    LogPage,
    Position,
    Wanted,
    as_file,
    last_lines,
    may_see,
    page_of,
)

SHOWN: Final = 500
"""Lines that the page of a run has; the file has all."""
LEVELS: Final = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
AFTER: Final = "X-Fairshift-After"
"""The header of an answer: where the next new lines begin; empty: no more will come."""


@dataclass(frozen=True, slots=True)
class Shown:
    """A line, as the page shows it."""

    line: LogLine
    clock: str
    since: str
    tone: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """The log on the page of a run."""

    lines: Sequence[Shown]
    after: Position
    has_earlier: bool
    is_live: bool
    wanted: Wanted
    attempts: Sequence[int]
    levels: Sequence[str]
    query: str
    """The filter, as the query of an address."""


def card_of(visit: Visit, run: Run) -> Card | None:
    """Return the log of a run; None for a visitor who may not see it."""
    if not may_see(run, visit.access):
        return None
    wanted = _wanted(visit.request)
    found = last_lines(run, wanted=wanted, most=SHOWN)
    given = {"attempt": wanted.attempt, "level": wanted.level, "text": wanted.text}
    return Card(
        lines=_shown(found, run),
        after=found.after,
        has_earlier=found.has_more,
        is_live=run.state not in ENDED,
        wanted=wanted,
        attempts=range(1, run.attempt_number + 1),
        levels=LEVELS,
        query=urlencode({name: value for name, value in given.items() if value}),
    )


@page("runs", permission="jobs.view_run")
def run_log(visit: Visit, run_id: UUID) -> HttpResponseBase:
    """Return the first lines after a position (`after`), or all of them as a file (`format`)."""
    run: Run = find(RUNS, run_id, by=visit.access)
    if not may_see(run, visit.access):
        raise forbidden()
    asked = visit.request.GET
    if asked.get("format") in FILE_TYPES:
        return _file(run, _wanted(visit.request), asked["format"])
    try:
        after = Position.parsed(asked.get("after", ""))
    except ValueError:
        after = START
    found = page_of(run, after=after, wanted=_wanted(visit.request), most=SHOWN)
    text = render_to_string("jobs/pages/runs/log_lines.html", {"lines": _shown(found, run)})
    is_over = run.state in ENDED and not found.has_more
    facts = {AFTER: "" if is_over else str(found.after), "Cache-Control": "private, no-store"}
    return HttpResponse(text, headers=facts)


def _file(run: Run, wanted: Wanted, form: str) -> HttpResponseBase:
    # Read at once: the barrier of the request is lowered before a stream is sent.
    parts = list(as_file(run, wanted=wanted, form=form))
    suffix, content_type = FILE_TYPES[form]
    answer = StreamingHttpResponse(parts, content_type=content_type)
    answer["Content-Disposition"] = f'attachment; filename="{run.id}.{suffix}"'
    answer["Cache-Control"] = "private, no-store"
    return answer


def _wanted(request: HttpRequest) -> Wanted:
    """Return the filter of a request; what is no filter is left out."""
    asked: Mapping[str, str] = request.GET
    attempt, level = asked.get("attempt", ""), asked.get("level", "")
    return Wanted(
        attempt=int(attempt) if attempt.isdecimal() and len(attempt) < 6 else None,
        level=level if level in LEVELS else "DEBUG",
        text=asked.get("text", "")[:200],
    )


def _shown(found: LogPage, run: Run) -> list[Shown]:
    if not found.lines:
        return []
    starts: dict[int, datetime | None] = {run.attempt_number: run.started_at or run.admitted_at}
    starts |= dict(run.attempts.values_list("number", "started_at"))
    return [_one(line, starts.get(line.attempt)) for line in found.lines]


def _one(line: LogLine, start: datetime | None) -> Shown:
    since = "" if start is None else f"{(line.at - start).total_seconds():+.3f} s"
    clock = f"{timezone.localtime(line.at):%H:%M:%S.%f}"[:-3]
    tone = "bad" if line.level >= logging.ERROR else "warn" if line.level >= 30 else "soft"
    return Shown(line, clock, since, tone)
