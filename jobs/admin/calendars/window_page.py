"""Windows and freezes: edited and previewed. Their pages have the decisions on them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from zoneinfo import ZoneInfo

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet, prefetch_related_objects
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.translation import gettext_lazy as _

from jobs.actions.filters.calendars import WindowFilter
from jobs.actions.windows import WINDOWS
from jobs.admin.calendars.access import CalendarPages, owner_or_shared
from jobs.admin.calendars.window_form import EXCEPTIONS, REPEATS_OF, TIMES, WindowForm
from jobs.admin.calendars.window_preview import preview, times_in
from jobs.admin.kit import html
from jobs.admin.kit.filters import declared, linked
from jobs.calendars import windows
from jobs.calendars.hours import entry_of
from jobs.calendars.reads.occurrence_list import clock, next_occurrences
from jobs.calendars.reads.window_state import words_of
from jobs.core.language import in_language
from jobs.core.zones import zone_names
from jobs.models import Calendar, Window
from jobs.pages.calendars.words import state_with_pill, timetable_of


@admin.register(Window)
class WindowAdmin(CalendarPages):
    noun = WINDOWS
    owner_path = "calendar__owner"
    form = WindowForm
    change_form_template = "admin/jobs/window/change_form.html"
    list_display = ("words", "state", "calendar_link", "owner_link", "next", "why", "asked")
    list_display_links = ("words",)
    list_select_related = ("calendar", "calendar__owner", "requested_by", "requested_by_token")
    list_filter = (
        *declared(WindowFilter, "state", "effect", "owner", has_shared=True),
        linked("calendar", Calendar),
    )
    search_fields = ("reason",)
    search_help_text = _("A part of the reason.")
    ordering = ("-pk",)
    autocomplete_fields = ("calendar",)
    fieldsets = (
        (None, {"fields": ("calendar", "effect", "reason", "seen")}),
        (_("When"), {"fields": TIMES}),
        (_("Exceptions and validity"), {"fields": EXCEPTIONS}),
    )

    class Media:
        css = {"all": ("jobs/calendar.css",)}
        js = ("jobs/live_preview.js", "jobs/window_form.js")

    # --- what is shown -----------------------------------------------------------------------

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.preview)
        return [path("preview/", view, name="jobs_window_preview"), *super().get_urls()]

    def preview(self, request: HttpRequest) -> HttpResponse:
        """Show what the window in a form means, before it is saved."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        return preview(request)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return super().get_queryset(request).select_related(*self.list_select_related)

    def complete(self, rows: Sequence[Any], request: HttpRequest) -> None:
        prefetch_related_objects(rows, "decisions")

    @html.column(_("when"))
    def words(self, window: Window) -> Any:
        return in_language(words_of(window))

    @html.column(_("state"))
    def state(self, window: Window) -> str:
        state, _sign, _tone = state_with_pill(window, now=timezone.now())
        return format_html("{} {}", html.badge(state.word, state.kind), state.more)

    calendar_link = html.column_of(_("calendar"), "calendar", html.link)
    owner_link = html.column_of(_("owner"), "calendar.owner", owner_or_shared)

    @html.column(_("next"))
    def next(self, window: Window) -> Any:
        found = next_occurrences(entry_of(window), after=timezone.now(), count=1)
        return clock(found[0].span, ZoneInfo(window.zone)) if found else _("none any more")

    @html.column(_("reason"))
    def why(self, window: Window) -> str:
        return html.cut(window.reason, hint=window.reason)

    asked = html.column_of(_("requested"), "requested_at", html.moment)

    # --- the page ----------------------------------------------------------------------------

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        return ["calendar"] if obj else []

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        """Show no times to a person who may not change them: they are below, in words."""
        if obj is not None and not self.has_change_permission(request, obj):
            return [(None, {"fields": ("calendar", "effect", "reason")})]
        return super().get_fieldsets(request, obj)

    def get_form(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        # The form declares the other fields itself: they are not columns as they are typed.
        return super().get_form(request, *args, **{**kwargs, "fields": WindowForm.Meta.fields})

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        asked = super().get_changeform_initial_data(request)
        return {name: asked[name] for name in ("calendar", "effect") if name in asked}

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        window, form = kwargs.get("obj"), context["adminform"].form
        # Read anew, because Django has copied the typed values to `window`.
        stored = self.get_object(request, str(window.pk)) if window is not None else None
        now = timezone.now()
        is_typed = form.is_bound and isinstance(form, WindowForm)
        context |= {
            "stored": stored,
            "state": stored and self.state(stored),
            "timetable": times_in(form) if is_typed else stored and timetable_of(stored, now=now),
            "address": reverse("admin:jobs_window_preview"),
            "repeats_of": REPEATS_OF,
            "zones": sorted(zone_names()),
            "may_edit": self.has_change_permission(request, window) if window else True,
        }
        return super().render_change_form(request, context, *args, **kwargs)

    # --- saving ------------------------------------------------------------------------------

    def save_model(self, request: HttpRequest, obj: Window, form: Any, change: bool) -> None:
        actor: Any = request.user
        entry = form.entry
        names = ("starts", "duration", "zone", "rule", *EXCEPTIONS, "reason")
        given = {name: getattr(entry, name) for name in names} | {"effect": entry.effect.value}
        if change:
            stored = Window.objects.get(pk=obj.pk)
            saved = windows.change_window(stored, actor=actor, **given)
        else:
            saved = windows.request_window(obj.calendar, actor=actor, **given)
        obj.pk = saved.pk
        obj.refresh_from_db()

    def audit(self, action: str, row: Any, request: HttpRequest, **details: Any) -> None:
        """Write nothing: the functions of `jobs.calendars.windows` write the audit."""
