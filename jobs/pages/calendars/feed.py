"""The page of a calendar's feed: it makes an address, which is shown once, or removes it."""

from __future__ import annotations

from django.http import HttpResponse
from django.utils.translation import gettext as _

from jobs.calendars.ical_feed import feed_path, forget_secret, is_stopped, new_secret
from jobs.core import barrier
from jobs.models import Scope
from jobs.pages.calendars.finding import find_calendar
from jobs.pages.kit.acts import done
from jobs.pages.kit.visit import Visit, page


@page("calendars", permission="jobs.view_calendar", methods=("GET", "POST"))
def feed(visit: Visit, key: int) -> HttpResponse:
    """Say whether the feed has an address; a POST replaces or removes it."""
    found = find_calendar(visit, key)
    visit.refuse_unless("jobs.change_calendar", Scope.ADMIN, found.owner_id)
    request, actor = visit.request, visit.access.actor
    address = ""
    with barrier.lifted():
        if "forget" in request.POST:
            forget_secret(found, actor=actor)
            return done(visit, _("The feed has no address now."), to=request.path)
        if "new" in request.POST:
            address = request.build_absolute_uri(feed_path(new_secret(found, actor=actor)))
        stopped = not address and is_stopped(found)
    response = visit.show(
        "jobs/pages/calendars/feed.html", calendar=found, address=address, is_stopped=stopped
    )
    # The address is shown once, so no cache may store it.
    response["Cache-Control"] = "no-store"
    return response
