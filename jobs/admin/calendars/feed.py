"""The page of a calendar's feed: makes an address, which is shown once, or removes it."""

from __future__ import annotations

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import URLPattern, path
from django.utils.translation import gettext as _

from jobs.admin.kit.base import OwnedAdmin
from jobs.calendars.ical_feed import MOUNT, feed_path, forget_secret, is_stopped, new_secret


class FeedUrls(OwnedAdmin):
    """Adds the page of a calendar's feed. Mix in before other admin classes."""

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.feed_view)
        return [path("<int:pk>/feed/", view, name="jobs_calendar_feed"), *super().get_urls()]

    def feed_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Say whether the feed has an address; a POST replaces or removes it."""
        calendar = get_object_or_404(self.get_queryset(request).select_related("owner"), pk=pk)
        if not self.has_change_permission(request, calendar):
            raise PermissionDenied
        # Any secret shows whether the project has mounted the feeds.
        is_mounted = feed_path("secret") is not None
        address = ""
        if "forget" in request.POST:
            forget_secret(calendar, actor=request.user)
            messages.success(request, _("The feed has no address now."))
            return redirect(request.path)
        if "new" in request.POST and is_mounted:
            path_of_feed = feed_path(new_secret(calendar, actor=request.user))
            address = request.build_absolute_uri(path_of_feed)
        context = {
            "calendar": calendar,
            "address": address,
            "is_stopped": not address and is_stopped(calendar),
            "mount": "" if is_mounted else MOUNT,
            "title": _("Feed"),
        }
        response = self.page(request, "admin/jobs/calendar/feed.html", context)
        # The address is shown once, so no cache may store it.
        response["Cache-Control"] = "no-store"
        return response
