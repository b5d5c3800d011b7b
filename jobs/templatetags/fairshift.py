"""Filters and tags of our pages: `{% load fairshift %}`. They only call `jobs/pages/kit`."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django import template
from django.utils import timezone
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from jobs.core import language
from jobs.models import Run, TaskProgress
from jobs.models.access import Access
from jobs.pages.kit import pieces, times
from jobs.runs.reads.errors import message_of, shown

register = template.Library()

register.filter("in_language", language.in_language)
register.filter("state", pieces.state_pill)
register.filter("states_bar", pieces.states_bar)
register.filter("results_strip", pieces.results_strip)
register.filter("age", times.moment)
register.filter("exact", times.exact)
register.simple_tag(pieces.pill, name="pill")
register.simple_tag(pieces.share_bar, name="share_bar")
register.simple_tag(pieces.sparkline, name="sparkline")


@register.filter
def moment_to_minute(at: datetime | None) -> SafeString | str:
    """Return a time to the minute in the reader's zone, with UTC on hover."""
    return times.NOTHING if at is None else times.minute(at)


@register.filter
def minute_of_today(at: datetime | None) -> SafeString | str:
    """Return a time to the minute, with its date unless that is today; UTC on hover."""
    return times.NOTHING if at is None else times.minute(at, after=timezone.now())


@register.filter
def duration(value: timedelta | float | None) -> str:
    """Return a duration as text; it is given as a timedelta or in seconds."""
    if value is None or isinstance(value, timedelta):
        return times.span(value)
    return times.span(timedelta(seconds=value))


@register.filter
def number(value: Any) -> str:
    """Return a number with thousands apart; an inexact count as its text; nothing as a dash."""
    if value is None:
        return times.NOTHING
    return language.count_in_words(value)


@register.filter
def percent(part: float | None) -> str:
    """Return a part of 1 in percent, with one decimal; nothing as a dash."""
    return times.NOTHING if part is None else f"{language.number(100 * part, decimals=1)} %"


@register.filter
def decimal(value: float | None) -> str:
    """Return a number with two decimals; nothing as a dash."""
    return times.NOTHING if value is None else language.number(value, decimals=2)


@register.filter
def in_steps(progress: TaskProgress) -> str:
    """Return a task's progress as text: percent, steps, note."""
    return progress.shown(lambda steps, decimals: language.number(steps, decimals=decimals))


@register.filter
def error_name(error: str) -> str:
    """Return the class of an error without its module; a word for a run that failed without one."""
    return error.rpartition(".")[2] or _("no error: failed by hand")


@register.filter
def error_meaning(error: str) -> str:
    """Return what an error means that no task has raised; empty for the others."""
    match error.rpartition(".")[2]:
        case "NotBegun":
            return _(
                "No process began it in time: its machine is overloaded, or was stopped. It is"
                " tried again, and the attempt does not count."
            )
        case "WindowClosed":
            return _(
                "Its window closed before a process began it. It is tried again in the next"
                " opening, and the attempt does not count."
            )
    return ""


@register.filter
def error_message(run: Run, access: Access) -> Any:
    """Return the error message of a run in the reader's language, or that it is hidden."""
    return language.in_language(shown(message_of(run, access)))


@register.simple_tag(takes_context=True)
def page_url(context: Any, name: str, *arguments: Any, **query: Any) -> str:
    """Return the address of a page of ours with the chosen owner; empty if there is none."""
    return context["visit"].address(name, *arguments, **query) or ""


@register.filter
def took(run: Any) -> str:
    """Return how long a run took, from its last start to its end."""
    if run.started_at is None or run.ended_at is None:
        return times.NOTHING
    return times.span(run.ended_at - run.started_at)


@register.filter
def last_name(name: str) -> str:
    """Return the last part of a dotted name, such as that of a task or a class."""
    return name.rpartition(".")[2] or name
