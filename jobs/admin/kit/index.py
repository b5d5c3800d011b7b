"""The index of the admin and its sidebar: our models below the project's own, each once.

The first entry of our section is the overview, from which all our pages can be reached. The
sections of django-celery-beat and django-celery-results come last.
"""

from __future__ import annotations

from typing import Any, Final

from django.contrib import admin
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from jobs.admin.kit.celery_pages import APPS
from jobs.pages.kit import nav

_PLACES: Final = {"jobs": 1, **dict.fromkeys(APPS, 2)}
"""The order of sections; 0 is the project's own."""


def come_last(site: admin.AdminSite) -> None:
    """Move our section of a site's index down; repeating the call changes nothing."""
    given = site.get_app_list
    if getattr(given, "is_ordered", False):
        return

    def ordered(request: HttpRequest, app_label: str | None = None) -> list[Any]:
        found = given(request, app_label)
        # The page of one app has its models only.
        return found if app_label is not None else _ordered(found, request)

    ordered.is_ordered = True  # type: ignore[attr-defined]
    site.get_app_list = ordered  # type: ignore[method-assign]


def _ordered(apps: list[dict[str, Any]], request: HttpRequest) -> list[dict[str, Any]]:
    """Return the sections with ours below the others, and the overview in it."""
    for app in apps:
        overview = nav.address("overview") if app["app_label"] == "jobs" else None
        if overview is not None:
            app["models"].insert(
                0,
                {
                    "name": _("Overview"),
                    "object_name": "overview",
                    # Django marks the entry whose address is a part of the path as the current
                    # page.
                    "admin_url": request.build_absolute_uri(overview),
                    "add_url": None,
                    "view_only": True,
                },
            )
    return sorted(apps, key=lambda app: _PLACES.get(app["app_label"], 0))


come_last(admin.site)
