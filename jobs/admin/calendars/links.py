"""Links to the calendars that apply to a row, for the row's page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from django.db.models import F
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.translation import gettext as _

from jobs.admin.kit import html
from jobs.calendars import gate
from jobs.calendars.visibility import visible_rows
from jobs.models import Calendar, Target


def calendars_by(kind: str, keys: Sequence[int], user: Any) -> dict[int, list[Calendar]]:
    """Return the calendars attached to targets or groups, by their keys, that a person may see."""
    path = f"attachments__{kind}"
    rows = visible_rows(Calendar.objects.filter(**{f"{path}__in": keys}), user)
    found: dict[int, list[Calendar]] = {}
    for calendar in rows.annotate(to=F(path)).order_by("name", "pk"):
        found.setdefault(calendar.to, []).append(calendar)
    return found


def links_to(rows: Iterable[Any]) -> str:
    """Return links to rows, separated by commas."""
    return format_html_join(", ", "{}", ((html.link(row),) for row in rows)) or html.NOTHING


def calendars_of_target(target: Target) -> str:
    """Return links to a target's month and its calendars, also those of its owner and groups."""
    keys = gate.calendars_of(target.owner_id, job_id=None, target_ids=[target.pk])[target.pk]
    found = links_to(Calendar.objects.filter(pk__in=keys).order_by("name", "pk"))
    month = reverse("jobs:month_of", args=["target", target.pk])
    return format_html('{} · <a href="{}">{}</a>', found, month, _("month"))
