"""Forecasts on pages: of a bulk before its submit, and of the waiting runs of a submission."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, Final

from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as lazy

from jobs.admin.kit import html
from jobs.core.counting import within
from jobs.core.language import in_language
from jobs.forecast.estimate import Forecast
from jobs.forecast.will_it_fit import forecast_rest, rough_forecast
from jobs.models import Submission

MILLISECONDS: Final = 1_000
"""A page waits no longer for a forecast."""
COUNTED: Final = (
    ("never", lazy("Never start")),
    ("unapproved", lazy("Of these, not approved")),
    ("without_calendar", lazy("Without a calendar")),
)
"""Counts of a forecast that may come with names of targets."""


def facts_of(found: Forecast) -> Iterator[tuple[str, Any]]:
    """Yield the lines of a forecast, a label and a value each, without empty lines."""
    yield _("Targets"), f"{found.count:,}"
    yield _("Windows that apply"), f"{found.windows:,}"
    yield _("Starts"), _moment(found.starts_at)
    yield _("Finishes by"), _moment(found.finishes_at)
    if found.latest_at is not None:
        yield _("Between"), f"{_moment(found.earliest_at)} – {_moment(found.latest_at)}"
    if found.finishes_at is None and found.ends_at is not None:
        yield _("Those that can, by"), _moment(found.ends_at)
    yield _("Left over after the first window"), f"{found.left_over:,}"
    if found.next_opening is not None:
        yield _("Next window for them"), _moment(found.next_opening)
    if found.expired:
        yield _("Expired before they start"), f"{found.expired:,}"
    for name, label in COUNTED:
        count = getattr(found, name)
        yield str(label), _with_names(count, found.names.get(name, ()))
    yield _("Share of the workers"), f"{found.share:.0%}"


def rest_in_words(submission: Submission) -> Any:
    """Return the forecast of a submission's waiting runs in one line, and its warnings."""
    found = within(MILLISECONDS, lambda: forecast_rest(submission))
    if found is None:
        # No run waits, or the forecast takes too long.
        found = within(MILLISECONDS, lambda: rough_forecast(submission))
    if found is None:
        return html.NOTHING
    line = _("left: %(count)s; finishes by %(at)s")
    if found.finishes_at is None:
        line = _("left: %(count)s; no end is known for all of them")
    line %= {"count": f"{found.count:,}", "at": _moment(found.finishes_at)}
    return line_with_notes(line, found.warnings)


def line_with_notes(line: str, notes: Iterable[str]) -> Any:
    """Return a line of text, and each note in a line below it."""
    below = format_html_join(
        "", '<div class="fs-note">{}</div>', ((in_language(note),) for note in notes)
    )
    return format_html("{}{}", line, below)


def _with_names(count: int, names: tuple[str, ...]) -> str:
    if not count or not names:
        return f"{count:,}"
    more = _(" and more") if count > len(names) else ""
    return f"{count:,}: {', '.join(names)}{more}"


def _moment(at: datetime | None) -> str:
    return f"{timezone.localtime(at):%Y-%m-%d %H:%M:%S %Z}" if at else _("not within a year")
