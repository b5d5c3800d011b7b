"""Filters and tags of our pages: `{% load fairshift %}`. They only call `jobs/pages/kit`."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django import template
from django.utils.safestring import SafeString

from jobs.pages.kit import pieces, times

register = template.Library()

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
def length(value: timedelta | float | None) -> str:
    """Return a length of time, given as such or in seconds."""
    if value is None or isinstance(value, timedelta):
        return times.span(value)
    return times.span(timedelta(seconds=value))


@register.filter
def number(value: Any) -> str:
    """Return a number with thousands apart; an inexact count as its text; nothing as a dash."""
    if value is None:
        return times.NOTHING
    words = getattr(value, "words", None)
    return str(words) if words else f"{value:,}"


@register.simple_tag(takes_context=True)
def page_url(context: Any, name: str, *arguments: Any, **query: Any) -> str:
    """Return the address of a page of ours with the chosen owner; empty if there is none."""
    return context["visit"].address(name, *arguments, **query) or ""
