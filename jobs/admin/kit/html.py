"""The small pieces of the pages: states, times, links. Every value is escaped.

A state is shown by a word and a colour, never by colour alone.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import wraps
from operator import attrgetter
from typing import Any, Final

from django.contrib import admin
from django.db import models
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as lazy

from jobs.core import log_events
from jobs.models import Run
from jobs.pages.kit.times import (  # noqa: F401  the admin's modules use them as html.…
    NOTHING,
    between,
    exact,
    moment,
    span,
)

logger = logging.getLogger(__name__)

LINE_LIMIT: Final = 60


def column(title: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Make a method a column; a row that it cannot show reads "unreadable"."""

    def made(method: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(method)
        def shown(self: Any, row: Any) -> Any:
            try:
                return method(self, row)
            # Rows may be written by raw SQL: a broken row must not hide the others.
            except Exception:
                facts = {"part": method.__name__, "row": row.pk}
                log_events.ROW_UNREADABLE.log(logger, exc_info=True, **facts)
                return format_html('<em class="fs-unreadable">{}</em>', _("unreadable"))

        return admin.display(description=title, empty_value=NOTHING)(shown)

    return made


def column_of(title: Any, path: str, show: Callable[[Any], Any]) -> Any:
    """Make a column of what `show` returns for an attribute of the row, such as "job.owner"."""
    value = attrgetter(path)

    def shown(_page: Any, row: Any) -> Any:
        return show(value(row))

    shown.__name__ = path
    return column(title)(shown)


def badge(word: Any, kind: str | None = None) -> SafeString:
    """Return a word in the colour of a state; `kind` names the state when the word does not."""
    return format_html('<span class="fs-state fs-{}">{}</span>', kind or word, word)


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
    return list_link(Run, text, **filters)


def runs_of(name: str, path: str = "pk") -> Any:
    """Make a column that leads to a row's runs, by the filter `name` with the row's `path`."""

    def shown(value: Any) -> SafeString | str:
        # The form of a new row has no value yet.
        return runs_link(_("its runs"), **{name: value}) if value else NOTHING

    return column_of(lazy("runs"), path, shown)


def short_identifier(key: Any) -> SafeString:
    """Return the end of an id, where ids differ most, with the whole id on hover."""
    return format_html('<span class="fs-id" title="{}">…{}</span>', key, str(key)[-12:])


def code(text: str) -> SafeString | str:
    """Return a name in the type of code."""
    return format_html("<code>{}</code>", text) if text else NOTHING


def task(name: str) -> SafeString:
    """Return the last part of a task's name, with the whole name on hover."""
    return format_html('<span title="{}">{}</span>', name, name.rpartition(".")[2] or name)


def clipped(text: str, *, hint: str) -> SafeString | str:
    """Return an error cut to one line, with a longer text on hover."""
    return (
        format_html('<span class="fs-error">{}</span>', cut(text, hint=hint)) if text else NOTHING
    )


def cut(text: str, *, hint: str) -> SafeString | str:
    """Return a text cut to one line, with a longer text on hover."""
    if not text:
        return NOTHING
    short = text if len(text) <= LINE_LIMIT else f"{text[:LINE_LIMIT]}…"
    return format_html('<span title="{}">{}</span>', hint[:500], short)


def pairs(mapping: Mapping[str, Any]) -> SafeString | str:
    """Return a mapping as small name=value marks."""
    if not mapping:
        return NOTHING
    pair = '<span class="fs-pair"><b>{}</b> {}</span>'
    return format_html_join(" ", pair, mapping.items())
