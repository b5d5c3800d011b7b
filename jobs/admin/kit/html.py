"""The small pieces of the pages: states, bars, times, links. Every value is escaped.

A state is told by a word and a colour, never by colour alone.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from functools import wraps
from typing import Any, Final

from django.contrib import admin
from django.db import models
from django.urls import reverse
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from jobs.core.states import State

logger = logging.getLogger(__name__)

NOTHING: Final = "–"
LETTERS: Final = {
    State.SCHEDULED: "S",
    State.HELD: "H",
    State.QUEUED: "Q",
    State.ADMITTED: "A",
    State.RUNNING: "R",
    State.CANCELLING: "…",
    State.RETRYING: "↻",
    State.SUCCEEDED: "✓",
    State.FAILED: "F",
    State.CANCELLED: "C",
    State.EXPIRED: "E",
}
# What has ended well comes first, what waits comes last: as a bar fills.
BAR_ORDER: Final = (
    State.SUCCEEDED,
    State.FAILED,
    State.EXPIRED,
    State.CANCELLED,
    State.RUNNING,
    State.ADMITTED,
    State.CANCELLING,
    State.RETRYING,
    State.QUEUED,
    State.HELD,
    State.SCHEDULED,
)


def column(
    title: Any, *, order: str | None = None
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Make a method a column that stays readable when its row is broken."""

    def made(method: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(method)
        def shown(self: Any, row: Any) -> Any:
            try:
                return method(self, row)
            # Rows may be written by raw SQL: one that cannot be shown must not hide the others.
            except Exception:
                logger.warning("%s of %r cannot be shown", method.__name__, row.pk, exc_info=True)
                return format_html('<em class="fs-unreadable">{}</em>', _("unreadable"))

        return admin.display(description=title, ordering=order, empty_value=NOTHING)(shown)

    return made


def badge(word: Any, kind: str | None = None) -> SafeString:
    """Return a word on its colour; `kind` names the colour when the word does not."""
    return format_html('<span class="fs-state fs-{}">{}</span>', kind or word, word)


def moment(at: datetime | None) -> SafeString | str:
    """Return a time in words of age, with the full local and UTC times on hover."""
    if at is None:
        return NOTHING
    local = timezone.localtime(at)
    full = f"{local:%Y-%m-%d %H:%M:%S %Z} · {at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
    return format_html(
        '<time datetime="{}" title="{}">{}</time>', at.isoformat(), full, _in_words(at)
    )


def exact(at: datetime | None) -> SafeString | str:
    """Return a time to the millisecond in the reader's zone, with UTC on hover."""
    if at is None:
        return NOTHING
    local = timezone.localtime(at)
    return format_html(
        '<time datetime="{}" title="{} UTC">{}</time>',
        at.isoformat(),
        f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S.%f}"[:-3],
        f"{local:%Y-%m-%d %H:%M:%S.%f}"[:-3] + f" {local:%Z}",
    )


def clock(at: datetime, *, after: datetime | None) -> SafeString | str:
    """Return a time of day, with the day when it is another than that of an earlier time."""
    local = timezone.localtime(at)
    if after is None or timezone.localtime(after).date() != local.date():
        return exact(at)
    return format_html(
        '<time datetime="{}" title="{} UTC">{}</time>',
        at.isoformat(),
        f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S.%f}"[:-3],
        f"{local:%H:%M:%S.%f}"[:-3],
    )


def between(first: datetime, last: datetime) -> SafeString | str:
    """Return a span of times in the reader's zone, the day said once; UTC on hover."""
    if first == last:
        return minute(first)
    return format_html("{} – {}", minute(first), minute(last, after=first))


def minute(at: datetime, *, after: datetime | None = None) -> SafeString:
    """Return a time to the minute in the reader's zone, without the day when it is the same."""
    local = timezone.localtime(at)
    is_same_day = after is not None and timezone.localtime(after).date() == local.date()
    return format_html(
        '<time datetime="{}" title="{} UTC">{}</time>',
        at.isoformat(),
        f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S}",
        f"{local:%H:%M}" if is_same_day else f"{local:%Y-%m-%d %H:%M}",
    )


def span(length: timedelta | None) -> str:
    """Return a length of time in the two units that matter."""
    if length is None:
        return NOTHING
    seconds = max(0.0, length.total_seconds())
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours < 48 else f"{hours // 24} d {hours % 24} h"


def link(row: models.Model | None, text: Any = None) -> SafeString | str:
    """Return a link to a row's page in the admin."""
    if row is None:
        return NOTHING
    name = f"admin:{row._meta.app_label}_{row._meta.model_name}_change"
    return format_html('<a href="{}">{}</a>', reverse(name, args=[row.pk]), text or row)


def list_link(model: type[models.Model], text: Any, **filters: Any) -> SafeString:
    """Return a link to a model's list, filtered."""
    name = f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist"
    return format_html('<a href="{}">{}</a>', reverse(name, query=filters), text)


def runs_link(text: Any, **filters: Any) -> SafeString:
    """Return a link to the list of runs, filtered."""
    return format_html(
        '<a href="{}">{}</a>',
        reverse("admin:jobs_run_changelist", query=filters),
        text,
    )


def progress_bar(counts: Mapping[State, int], *, total: int) -> SafeString:
    """Return a bar of the states' shares, and the counts in words.

    Drawn as SVG: its geometry is attributes, so no inline style is needed.
    """
    whole = max(total, sum(counts.values()), 1)
    parts, words, left = [], [], 0.0
    for state in BAR_ORDER:
        if count := counts.get(state, 0):
            width = 100 * count / whole
            parts.append((f"fs-bar-{state}", f"{left:.3f}", f"{width:.3f}"))
            words.append(f"{count:,} {state}")
            left += width
    text = " · ".join(words) or _("no runs")
    return format_html(
        '<span class="fs-progress"><svg class="fs-bar" viewBox="0 0 100 6" '
        'preserveAspectRatio="none" role="img" aria-label="{}">{}</svg>'
        '<span class="fs-counts">{}</span></span>',
        text,
        format_html_join("", '<rect class="{}" x="{}" y="0" width="{}" height="6"></rect>', parts),
        text,
    )


def strip(results: list[tuple[Any, State]]) -> SafeString | str:
    """Return the last results of a job as lettered marks, oldest first, each linked to its run."""
    marks = (
        (
            reverse("admin:jobs_run_change", args=[run_id]),
            state,
            state,
            LETTERS[state],
            state,
        )
        for run_id, state in reversed(results)
    )
    return (
        format_html(
            '<span class="fs-strip">{}</span>',
            format_html_join(
                "",
                '<a href="{}" class="fs-mark fs-{}" title="{}"><span aria-hidden="true">{}</span>'
                '<span class="visually-hidden">{}</span></a>',
                marks,
            ),
        )
        if results
        else NOTHING
    )


def _in_words(at: datetime) -> str:
    age = timezone.now() - at
    ahead = age < timedelta(0)
    length = abs(age)
    if length >= timedelta(days=2):
        return date_format(timezone.localtime(at), "Y-m-d H:i")
    seconds = int(length.total_seconds())
    if seconds < 60:
        words = f"{seconds} s"
    elif seconds < 3600:
        words = f"{seconds // 60} min"
    else:
        words = f"{seconds // 3600} h {seconds % 3600 // 60} min"
    return _("in %(span)s") % {"span": words} if ahead else _("%(span)s ago") % {"span": words}


def short_identifier(key: Any) -> SafeString:
    """Return the end of an id, which differs most, with the whole on hover."""
    return format_html('<span class="fs-id" title="{}">…{}</span>', key, str(key)[-12:])


def code(text: str) -> SafeString | str:
    """Return a name as it stands in code."""
    return format_html("<code>{}</code>", text) if text else NOTHING


def task(name: str) -> SafeString:
    """Return the last part of a task's name, the whole on hover."""
    return format_html('<span title="{}">{}</span>', name, name.rpartition(".")[2] or name)


def clipped(text: str, *, hint: str, most: int = 60) -> SafeString | str:
    """Return an error cut to one line, with a longer text on hover."""
    if not text:
        return NOTHING
    return format_html('<span class="fs-error">{}</span>', cut(text, hint=hint, most=most))


def cut(text: str, *, hint: str, most: int = 60) -> SafeString | str:
    """Return a text cut to one line, with a longer one on hover."""
    if not text:
        return NOTHING
    short = text if len(text) <= most else f"{text[:most]}…"
    return format_html('<span title="{}">{}</span>', hint[:500], short)


def pairs(mapping: Mapping[str, Any]) -> SafeString | str:
    """Return a mapping as small name=value marks."""
    if not mapping:
        return NOTHING
    items = ((name, value) for name, value in mapping.items())
    return format_html_join(" ", '<span class="fs-pair"><b>{}</b> {}</span>', items)


def outside(address: str) -> SafeString:
    """Return a link to another program's page."""
    return format_html('<a href="{}" rel="noreferrer">{}</a>', address, address)
