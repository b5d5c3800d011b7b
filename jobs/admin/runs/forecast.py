"""A forecast on a page: of a bulk that is to be submitted, and of what still waits of one."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final

from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.translation import gettext as _

from jobs.admin.kit import html
from jobs.core.counting import within
from jobs.forecast.estimate import Forecast
from jobs.forecast.will_it_fit import UNKNOWN_SECONDS, first_estimate, forecast_rest
from jobs.models import Submission

MILLISECONDS: Final = 1_000
"""A page does not wait longer for a forecast."""


def facts_of(found: Forecast) -> Iterator[tuple[str, Any]]:
    """Yield what a forecast says, line by line: those that say nothing are left out."""
    yield _("Targets"), f"{found.count:,}"
    yield _("Windows that apply"), f"{found.windows:,}"
    yield _("Starts"), _moment(found.starts_at)
    yield _("Finishes by"), _moment(found.finishes_at)
    if found.finishes_at is None and found.ends_at is not None:
        yield _("Those that can, by"), _moment(found.ends_at)
    yield _("Left over after the first window"), f"{found.left_over:,}"
    if found.next_opening is not None:
        yield _("Next window for them"), _moment(found.next_opening)
    if found.expired:
        yield _("Expired before they start"), f"{found.expired:,}"
    for name, label in _counted():
        count = getattr(found, name)
        yield label, _with_names(count, found.names.get(name, ()))
    yield _("Share of the workers"), f"{found.share:.0%}"


def rest_in_words(submission: Submission) -> Any:
    """Return in a line how what still waits of a submission will go."""
    found = within(MILLISECONDS, lambda: forecast_rest(submission))
    if found is None:
        # Nothing waits any more, or the forecast takes longer than a page does.
        return rough_in_words(submission)
    count, at = f"{found.count:,}", _moment(found.finishes_at)
    words = _("left: %(count)s; finishes by %(at)s")
    if found.finishes_at is None:
        words = _("left: %(count)s; no end is known for all of them")
    said = words % {"count": count, "at": at}
    notes = format_html_join("", '<div class="fs-note">{}</div>', ((x,) for x in found.warnings))
    return format_html("{}{}", said, notes)


def rough_in_words(submission: Submission) -> Any:
    """Return a first estimate, by what is left, the slots and the run time of its task alone."""
    found = within(MILLISECONDS, lambda: first_estimate(submission))
    if found is None:
        return html.NOTHING
    said = _("left: %(count)s; about %(length)s if all slots are its own and its windows stay open")
    text = said % {"count": f"{found.count:,}", "length": html.span(found.length)}
    note = (
        ""
        if found.is_known
        else _("No run is known yet: each is taken to need %g s.") % UNKNOWN_SECONDS
    )
    return format_html('{}<div class="fs-note">{}</div>', text, note) if note else text


def _counted() -> tuple[tuple[str, str], ...]:
    return (
        ("never", _("Never start")),
        ("unapproved", _("Of these, not approved")),
        ("without_calendar", _("Without a calendar")),
    )


def _with_names(count: int, names: tuple[str, ...]) -> str:
    if not count or not names:
        return f"{count:,}"
    more = _(" and more") if count > len(names) else ""
    return f"{count:,}: {', '.join(names)}{more}"


def _moment(at: datetime | None) -> str:
    return f"{timezone.localtime(at):%Y-%m-%d %H:%M:%S %Z}" if at else _("not within a year")
