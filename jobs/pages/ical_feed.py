"""The .ics feed of a calendar, at a secret address that needs no login."""

from __future__ import annotations

from hashlib import sha256

from django.http import HttpRequest, HttpResponse
from django.utils.cache import get_conditional_response
from django.utils.http import quote_etag
from django.views.decorators.http import require_safe

from jobs.calendars.ical_feed import calendar_of, counted_owners, recent_feed


@require_safe
def calendar_feed(request: HttpRequest, secret: str) -> HttpResponse:
    """Return the last week and the coming weeks of a calendar; 304 if the client has them."""
    calendar = calendar_of(secret)
    if calendar is None:
        # The same answer to all clients: with DEBUG, Http404 would reveal more.
        return HttpResponse("There is no such calendar.\n", status=404, content_type="text/plain")
    content = recent_feed(calendar, owners=counted_owners(calendar))
    response = HttpResponse(content, content_type="text/calendar; charset=utf-8")
    response["ETag"] = quote_etag(sha256(content).hexdigest())
    response["Cache-Control"] = "private, no-cache"
    response["Content-Disposition"] = 'inline; filename="calendar.ics"'
    found: HttpResponse | None = get_conditional_response(
        request, etag=response["ETag"], response=response
    )
    return found or response
