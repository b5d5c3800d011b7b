"""Whether a calendar is open now, when it opens next, and its problems; few queries for a page.

Lists read the stored openings, as admission does, and expand no rule.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.db.models import Count
from django.utils.translation import gettext as _

from jobs.calendars.changes import AHEAD
from jobs.calendars.hours import hours_of
from jobs.calendars.reads.window_state import needing_approval, to_be_approved, with_approval
from jobs.calendars.visibility import visible_attachments
from jobs.core import sql
from jobs.models import Attachment, Calendar, Window
from jobs.windows import Span, next_opening

SHOWN: Final = 3
_FIRST: Final = """
SELECT asked.id, first.opens_at, first.closes_at
FROM (SELECT %s::timestamptz AS moment, unnest(%s::bigint[]) AS id) AS asked
CROSS JOIN LATERAL (
    SELECT opens_at, closes_at FROM jobs_opening
    WHERE calendar_id = asked.id AND closes_at > asked.moment ORDER BY opens_at LIMIT 1
) AS first
"""


@dataclass(frozen=True, slots=True)
class Status:
    """Open until `closes_at` (None: end not known), or closed until `opens_at` (None: never)."""

    is_open: bool = False
    opens_at: datetime | None = None
    closes_at: datetime | None = None
    problem: str = ""


def complete(calendars: Sequence[Calendar], user: Any, *, now: datetime) -> None:
    """Add to a page's calendars their status, the number of requests, and their attachments."""
    keys = [calendar.pk for calendar in calendars]
    first = sql.query(_FIRST, [now, keys])
    openings = {row["id"]: Span(row["opens_at"], row["closes_at"]) for row in first}
    unapproved = _unapproved(set(keys) - openings.keys())
    windows = to_be_approved(Window.objects.filter(calendar__in=keys)).order_by()
    asked = dict(windows.values_list("calendar").annotate(count=Count("*")))
    counts: Counter[int] = Counter()
    shown: dict[int, list[Any]] = {}
    attachments = visible_attachments(Attachment.objects.filter(calendar__in=keys), user)
    related = attachments.select_related("owner", "job", "target", "group")
    for row in related.defer("job__payload").order_by("calendar", "pk"):
        counts[row.calendar_id] += 1
        if counts[row.calendar_id] <= SHOWN:
            shown.setdefault(row.calendar_id, []).append(row.to)
    for calendar in calendars:
        page: Any = calendar
        page.page_status = _status(
            calendar, openings.get(calendar.pk), is_unapproved=calendar.pk in unapproved, now=now
        )
        page.page_asked = asked.get(calendar.pk, 0)
        page.page_attached = shown.get(calendar.pk, []), counts[calendar.pk]


def find_far_opening(calendar: Calendar, *, now: datetime) -> None:
    """Look a year ahead for the opening of one calendar whose stored openings have none."""
    page: Any = calendar
    if page.page_status.problem != _far():
        return
    try:
        hours = hours_of([calendar.pk])[calendar.pk]
        opening = next_opening([hours], after=now, needed=timedelta(0))
    # Raw SQL may have broken rows.
    except Exception as error:
        page.page_status = Status(problem=_("cannot be read (%s)") % error)
        return
    if opening is None:
        page.page_status = Status(problem=_("not open within a year"))
    else:
        page.page_status = Status(opens_at=opening.start)


def _status(
    calendar: Calendar, opening: Span | None, *, is_unapproved: bool, now: datetime
) -> Status:
    until = calendar.computed_until
    if until is None:
        return Status(problem=_("its openings are not made yet"))
    if opening is None:
        return Status(problem=_("never open: no window is approved") if is_unapproved else _far())
    if opening.start > now:
        return Status(opens_at=opening.start)
    # The last known opening may end later than `until`.
    return Status(is_open=True, closes_at=opening.end if opening.end < until else None)


def _far() -> str:
    return _("not open within the next %d days") % AHEAD.days


def _unapproved(keys: Collection[int]) -> set[int]:
    """Return which of these have windows, but no approved one."""
    windows = needing_approval(Window.objects.filter(calendar__in=keys)).order_by()
    approved = with_approval(windows).values_list("calendar", flat=True)
    return set(windows.values_list("calendar", flat=True)) - set(approved)
