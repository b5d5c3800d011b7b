"""The reader's time zone: the one chosen at the foot of a page, else that of the browser.

A project that sets zones by a middleware of its own keeps them; only a chosen one is stronger.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final
from zoneinfo import ZoneInfo

from django.http import HttpRequest
from django.utils import timezone

from jobs.core.zones import zone_names

CHOSEN_COOKIE: Final = "fairshift_zone"
BROWSER_COOKIE: Final = "fairshift_browser_zone"
"""Set by jobs/static/jobs/pages/zone.js."""


def chosen_zone(request: HttpRequest) -> str:
    """Return the name of the zone that the reader has chosen; empty if there is none."""
    return _known(request, CHOSEN_COOKIE)


@contextmanager
def in_reader_zone(request: HttpRequest) -> Iterator[None]:
    """Show and read times in the reader's zone; without one, in the zone that is active."""
    is_default = timezone.get_current_timezone_name() == timezone.get_default_timezone_name()
    name = chosen_zone(request) or (_known(request, BROWSER_COOKIE) if is_default else "")
    if not name:
        yield
        return
    with timezone.override(ZoneInfo(name)):
        yield


def _known(request: HttpRequest, cookie: str) -> str:
    name = request.COOKIES.get(cookie, "")
    return name if name in zone_names() else ""
