"""iCalendar files (RFC 5545): windows are imported from one, and sent as one."""

from __future__ import annotations

from typing import Annotated, Any, Final

from django.http import HttpRequest, HttpResponse
from ninja import Schema
from pydantic import ConfigDict, Field

from jobs.actions import refuse_without_scope
from jobs.actions.texts import Text
from jobs.api.calendars.reading import READS, find_calendar
from jobs.api.calendars.router import router
from jobs.api.kit.answers import facts_of, sends_text
from jobs.api.kit.callers import caller, needs
from jobs.calendars.ical import SIZE_LIMIT
from jobs.calendars.ical_feed import recent_feed
from jobs.calendars.ical_import import SOURCE_LIMIT, ImportReport, import_ical, preview_ical
from jobs.core import barrier
from jobs.models import Scope, WindowEffect

IMPORTS = needs(Scope.ADMIN, "jobs.add_window")
ICALENDAR: Final = "text/calendar"
SENT: Final = sends_text(
    "Entries of the last week and of the coming 62 days, at most 2,000.", ICALENDAR
)


class FileToImport(Schema):
    """An iCalendar file whose events become the windows or freezes of one source."""

    model_config = ConfigDict(extra="forbid")

    file: Annotated[Text, Field(min_length=1, max_length=SIZE_LIMIT)]
    effect: WindowEffect = WindowEffect.WINDOW
    source: Annotated[Text, Field(min_length=1, max_length=SOURCE_LIMIT)] = Field(
        description="A later file of the same source replaces the windows of the earlier one."
    )
    dry_run: bool = Field(False, description="Report the changes without making them.")


class FileNote(Schema):
    """The line of an event from which its window differs, and how."""

    line: int
    detail: str


class FileChange(Schema):
    """A window that the import adds, changes or removes."""

    verb: str = Field(description="added, changed or removed")
    window: str
    reason: str


class FileReport(Schema):
    """The changes of an import; of a dry run, those that it would make."""

    added: int
    changed: int
    removed: int
    unchanged: int
    notes: list[FileNote]
    changes: list[FileChange]
    dry_run: bool

    @classmethod
    def of(cls, report: ImportReport, *, dry_run: bool) -> FileReport:
        notes = [FileNote(line=line, detail=detail) for line, detail in report.problems]
        return cls(**facts_of(cls, report, notes=notes, dry_run=dry_run))


@router.post(
    "/{int:calendar_id}/import", auth=IMPORTS, response=FileReport, operation_id="import_windows"
)
def import_windows(request: HttpRequest, calendar_id: int, body: FileToImport) -> FileReport:
    """Make a calendar's windows of one source equal to a file: all of it, or nothing.

    A file with errors is refused, with every wrong line.
    """
    calendar = find_calendar(request, calendar_id)
    refuse_without_scope(caller(request), Scope.ADMIN, calendar.owner_id)
    given: dict[str, Any] = {"effect": body.effect.value, "source": body.source}
    with barrier.lifted():
        data = body.file.encode()
        report = (
            preview_ical(calendar, data, **given)
            if body.dry_run
            else import_ical(calendar, data, actor=caller(request).actor, **given)
        )
    return FileReport.of(report, dry_run=body.dry_run)


@router.get(
    "/{int:calendar_id}/calendar.ics",
    auth=READS,
    operation_id="get_ical",
    openapi_extra=SENT,
)
def get_ical(request: HttpRequest, calendar_id: int) -> HttpResponse:
    """Return a calendar as an iCalendar file, for calendar programs."""
    calendar = find_calendar(request, calendar_id)
    access = caller(request)
    content = recent_feed(calendar, owners=None if access.sees_all else access.owner_ids())
    return HttpResponse(content, content_type=f"{ICALENDAR}; charset=utf-8")
