"""Is a calendar open now, when does it open next, and what is wrong with it? Few queries a page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.db.models import Count
from django.utils.translation import gettext as _

from jobs import agreed
from jobs.admin.calendar_access import attached
from jobs.admin.window_state import to_be_approved
from jobs.errors import WindowError
from jobs.models import Attachment, Calendar, Window
from jobs.windows import Calendar as Hours
from jobs.windows import Effect, closes_at, next_opening

SHOWN: Final = 3
_NONE: Final = timedelta(0)


@dataclass(frozen=True, slots=True)
class Status:
    """Open until `closes_at` (None: for ever), or closed until `opens_at` (None: a year)."""

    is_open: bool = False
    opens_at: datetime | None = None
    closes_at: datetime | None = None
    problem: str = ""


def status_of(hours: Hours, *, now: datetime) -> Status:
    """Return what a calendar is at a moment; pure."""
    try:
        opening = next_opening([hours], after=now, needed=_NONE)
        if opening is None:
            return Status(problem=_why_never(hours))
        if opening.start > now:
            return Status(opens_at=opening.start)
        return Status(is_open=True, closes_at=closes_at([hours], at=now))
    except WindowError as error:
        return Status(problem=str(error))


def _why_never(hours: Hours) -> str:
    windows = [entry for entry in hours.entries if entry.effect is Effect.WINDOW]
    if windows and all(entry.approved == () for entry in windows):
        return _("never open: no window is approved")
    return _("not open within a year")


def complete(calendars: Sequence[Calendar], user: Any, *, now: datetime) -> None:
    """Attach to a page's calendars: status, count to be approved, what they apply to."""
    keys = [calendar.pk for calendar in calendars]
    hours = _hours(keys)
    asked = _asked(keys)
    counts: Counter[int] = Counter()
    shown: dict[int, list[Any]] = {}
    for row in _attachments(keys, user):
        counts[row.calendar_id] += 1
        if counts[row.calendar_id] <= SHOWN:
            shown.setdefault(row.calendar_id, []).append(row.to)
    for calendar in calendars:
        page: Any = calendar
        known = hours.get(calendar.pk, _("its windows cannot be read"))
        page.page_status = (
            Status(problem=known) if isinstance(known, str) else status_of(known, now=now)
        )
        page.page_asked = asked.get(calendar.pk, 0)
        page.page_attached = shown.get(calendar.pk, []), counts[calendar.pk]


def _hours(keys: Sequence[int]) -> dict[int, Hours | str]:
    """Return when calendars are open, or what keeps one from being read."""
    try:
        return {**agreed.hours(keys)}
    # Rows may be written by raw SQL: one that is broken must not hide the others.
    except Exception as error:
        if len(keys) == 1:
            return {keys[0]: _("cannot be read (%s)") % error}
        return {one: found for key in keys for one, found in _hours([key]).items()}


def _asked(keys: Collection[int]) -> dict[int, int]:
    windows = to_be_approved(Window.objects.filter(calendar__in=keys)).order_by()
    return dict(windows.values_list("calendar").annotate(count=Count("*")))


def _attachments(keys: Collection[int], user: Any) -> Any:
    rows = attached(Attachment.objects.filter(calendar__in=keys), user)
    return (
        rows.select_related("owner", "job", "target", "group")
        .defer("job__payload")
        .order_by("calendar", "pk")
    )
