"""The page of a calendar's feed: a new address, shown once, or none any more."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils.translation import gettext as _

from jobs.admin.kit.base import OwnedAdmin
from jobs.calendars.ical_feed import forget_secret, new_secret
from jobs.models import Calendar
from jobs.pages.ical_feed import MOUNT, feed_path


class FeedUrls(OwnedAdmin):
    """The page of the feed, beside those of calendars. Mix in before other admin classes."""

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.feed_view)
        return [path("<int:pk>/feed/", view, name="jobs_calendar_feed"), *super().get_urls()]

    def feed_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Say whether the feed has an address; on a POST give it another one, or none."""
        calendar = self._calendar_of_feed(request, pk)
        address = ""
        if request.method == "POST" and "forget" in request.POST:
            forget_secret(calendar, actor=request.user)
            messages.success(request, _("The feed has no address any more."))
            return HttpResponseRedirect(request.path)
        if request.method == "POST" and "new" in request.POST:
            address = self._new_address(request, calendar)
        context: dict[str, Any] = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "media": self.media,
            "calendar": calendar,
            "address": address,
            # Asked with any word: whether there is a place for a feed at all.
            "mount": "" if feed_path("secret") else MOUNT,
            "title": _("Feed"),
        }
        request.current_app = self.admin_site.name
        response = TemplateResponse(request, "admin/jobs/calendar/feed.html", context)
        # The address is in no cache: it is shown once.
        response["Cache-Control"] = "no-store"
        return response

    def _new_address(self, request: HttpRequest, calendar: Calendar) -> str:
        """Return another address; empty, and the one before stays, where feeds have none."""
        if feed_path("secret") is None:
            return ""
        return request.build_absolute_uri(feed_path(new_secret(calendar, actor=request.user)))

    def _calendar_of_feed(self, request: HttpRequest, pk: int) -> Calendar:
        rows = self.get_queryset(request).select_related("owner")
        # Keys in an address may be larger than any column holds.
        calendar: Calendar | None = rows.filter(pk=pk).first() if pk < 2**63 else None
        if calendar is None:
            raise Http404
        if not self.has_change_permission(request, calendar):
            raise PermissionDenied
        return calendar
