"""The page of a month, of a calendar or of what calendars apply to."""

from __future__ import annotations

from typing import Any, Final

from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils import timezone
from django.utils.translation import gettext as _

from jobs.admin.calendars.access import CalendarPages
from jobs.admin.kit import html
from jobs.calendars.reads import month
from jobs.models import Job, Owner, Target, access

MONTHS_OF: Final[dict[str, type[Any]]] = {"owner": Owner, "job": Job, "target": Target}


class MonthPage(CalendarPages):
    """The page, beside those of calendars. Mix in before other admin classes."""

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view
        return [
            path("<int:pk>/month/", view(self.month_view), name="jobs_calendar_month"),
            path(
                "month/<slug:kind>/<int:pk>/", view(self.month_view), name="jobs_calendar_month_of"
            ),
            *super().get_urls(),
        ]

    def month_view(self, request: HttpRequest, pk: int, kind: str = "calendar") -> HttpResponse:
        """Show a month of a calendar, or of what calendars apply to."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        scope = month.scope_of(
            self._of(request, kind, pk), request.user, zone=request.GET.get("zone", "")
        )
        shown = month.view_of(scope, month=request.GET.get("month", ""), now=timezone.now())
        context = {
            **self.admin_site.each_context(request),
            "title": _("%s: month") % scope.subject,
            "opts": self.opts,
            "media": self.media,
            "view": shown,
            "subject_link": html.link(scope.subject),
            "kind": scope.subject._meta.verbose_name,
        }
        request.current_app = self.admin_site.name
        return TemplateResponse(request, "admin/jobs/calendar/month.html", context)

    def _of(self, request: HttpRequest, kind: str, pk: int) -> Any:
        rows: QuerySet[Any] = self.get_queryset(request).select_related("owner")
        if kind != "calendar":
            model = MONTHS_OF.get(kind)
            if model is None:
                raise Http404
            where = "pk" if model is Owner else "owner"
            rows = access.narrowed(model._default_manager.all(), request.user, path=where)
        # Keys in an address may be larger than any column holds.
        found = rows.filter(pk=pk).first() if pk < 2**63 else None
        if found is None:
            raise Http404
        return found
