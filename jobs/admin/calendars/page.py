"""Calendars: open or closed, what they apply to, their windows, and a link to the month."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from django.contrib import admin
from django.db import transaction
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.translation import gettext_lazy as _

from jobs.actions.calendars import CALENDARS
from jobs.actions.filters.calendars import CalendarFilter
from jobs.admin.calendars.access import CalendarPages, owner_or_shared
from jobs.admin.calendars.form import APPLIES_TO, OPTIONS, CalendarForm
from jobs.admin.calendars.ical_import import IcalUrls
from jobs.admin.kit import html
from jobs.admin.kit.base import with_fields
from jobs.admin.kit.filters import declared
from jobs.calendars import changes
from jobs.calendars.reads import status
from jobs.models import Attachment, Calendar, Window
from jobs.models.access import access_of

READ_ONLY_FIELDS: Final[dict[str, str | None]] = {
    "seen": None,
    **dict.fromkeys(APPLIES_TO),
    "owners": "applies_to",
}
"""The columns that replace the fields of the form for a person who may not change the calendar."""


@admin.register(Calendar)
class CalendarAdmin(IcalUrls, CalendarPages):
    noun = CALENDARS
    form = CalendarForm
    completes_object = True
    change_form_template = "admin/jobs/calendar/change_form.html"
    list_display = ("name", "status", "owner_link", "asked", "applies_to", "month_link", "problem")
    list_display_links = ("name",)
    list_select_related = ("owner",)
    list_filter = declared(CalendarFilter, "approval", "owner", has_shared=True)
    search_fields = ("name",)
    search_help_text = _("A part of the name.")
    ordering = ("name", "pk")
    autocomplete_fields = ("owner",)
    fieldsets = (
        (None, {"fields": ("owner", "name", "status", "seen")}),
        (_("Options"), {"fields": OPTIONS}),
        (
            _("Applies to"),
            {
                "fields": tuple(APPLIES_TO),
                "description": _("With several calendars, runs start only while all are open."),
            },
        ),
    )

    class Media:
        css = {"all": ("jobs/calendar.css",)}

    # --- what is shown -----------------------------------------------------------------------

    def complete(self, rows: Sequence[Any], request: HttpRequest) -> None:
        status.complete(rows, request.user, now=timezone.now())

    @html.column(_("now"))
    def status(self, calendar: Any) -> str:
        found = calendar.page_status
        if found.is_open:
            badge, word, at = html.badge(_("open"), "succeeded"), _("closes"), found.closes_at
        else:
            badge, word, at = html.badge(_("closed"), "held"), _("opens"), found.opens_at
        if at is not None:
            return format_html("{} {} {}", badge, word, html.moment(at))
        return format_html("{} {}", badge, "" if found.is_open else found.problem)

    owner_link = html.column_of(_("owner"), "owner", owner_or_shared)

    @html.column(_("to be approved"))
    def asked(self, calendar: Any) -> str:
        count = calendar.page_asked
        if not count:
            return html.NOTHING
        return html.list_link(Window, f"{count:,}", calendar=calendar.pk, state="requested")

    @html.column(_("applies to"))
    def applies_to(self, calendar: Any) -> str:
        shown, count = calendar.page_attached
        links: list[str] = [
            format_html("{} {}", row._meta.verbose_name, html.link(row)) for row in shown
        ]
        if count > len(shown):
            links.append(_("and %d more") % (count - len(shown)))
        return format_html_join(", ", "{}", ((link,) for link in links)) or html.NOTHING

    @html.column(_("month"))
    def month_link(self, calendar: Calendar) -> str:
        href = reverse("jobs:calendar", args=[calendar.pk])
        return format_html(
            '<a href="{}" aria-label="{}">{}</a>', href, _("month of %s") % calendar, _("month")
        )

    @html.column(_("problem"))
    def problem(self, calendar: Any) -> str:
        problem = calendar.page_status.problem
        if not problem and not calendar.page_attached[1]:
            problem = str(_("applies to nothing"))
        return html.clipped(problem, hint=problem)

    # --- the form ----------------------------------------------------------------------------

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        sets: Any = super().get_fieldsets(request, obj)
        if obj is not None and not self.has_change_permission(request, obj):
            return with_fields(sets, READ_ONLY_FIELDS)
        return sets if obj is not None else with_fields(sets, {"status": None})

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        shown = ["status", "applies_to"]
        # A calendar is attached to rows of its owner, so the owner stays.
        return [*shown, "owner"] if obj else shown

    def get_form(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        form: Any = super().get_form(request, *args, **kwargs)
        form.user = request.user
        if "owner" in form.base_fields and not access_of(request.user).sees_all:
            form.base_fields["owner"].required = True
            form.base_fields["owner"].help_text = ""
        return form

    def get_object(self, request: HttpRequest, object_id: str, from_field: Any = None) -> Any:
        found = super().get_object(request, object_id, from_field)
        if found is not None:
            status.find_far_opening(found, now=timezone.now())
        return found

    def save_model(self, request: HttpRequest, obj: Calendar, form: Any, change: bool) -> None:
        with transaction.atomic():
            if not change:
                obj.save()
            with changes.changing(obj) as locked:
                obj.version = locked.version
                if change:
                    obj.save(update_fields=["name", *OPTIONS])
            self._attach(obj, form)

    def _attach(self, calendar: Calendar, form: CalendarForm) -> None:
        for name, new, gone in form.changes():
            for row in sorted(new, key=lambda row: row.pk):
                changes.attach(calendar, row)
            column = f"{name.removesuffix('s')}__in"
            left = Attachment.objects.filter(calendar=calendar, **{column: gone})
            for attachment in left.select_related("owner", "job", "target", "group"):
                changes.detach(attachment)
