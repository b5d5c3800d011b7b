"""The page of a month, of a calendar or of a row that calendars apply to."""

from __future__ import annotations

from typing import Any, Final

from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import URLPattern, path
from django.utils import timezone
from django.utils.translation import gettext as _

from jobs.admin.calendars.access import CalendarPages
from jobs.admin.kit import html
from jobs.calendars.reads import month
from jobs.models import Job, Owner, Target
from jobs.models.access import access_of

MONTHS_OF: Final[dict[str, type[Any]]] = {"owner": Owner, "job": Job, "target": Target}


class MonthPage(CalendarPages):
    """Adds the page of a month. Mix in before other admin classes."""

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
        """Show a month of a calendar, or of a row that calendars apply to."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        content = month.content_of(
            self._subject(request, kind, pk), request.user, zone=request.GET.get("zone", "")
        )
        context = {
            "title": _("%s: month") % content.subject,
            "view": month.view_of(content, month=request.GET.get("month", ""), now=timezone.now()),
            "subject_link": html.link(content.subject),
            "kind": content.subject._meta.verbose_name,
        }
        return self.page(request, "admin/jobs/calendar/month.html", context)

    def _subject(self, request: HttpRequest, kind: str, pk: int) -> Any:
        if kind == "calendar":
            rows: QuerySet[Any] = self.get_queryset(request).select_related("owner")
        elif kind in MONTHS_OF:
            rows = MONTHS_OF[kind]._default_manager.all()
            rows = access_of(request.user).narrowed(rows, path="pk" if kind == "owner" else "owner")
        else:
            raise Http404
        return get_object_or_404(rows, pk=pk)
