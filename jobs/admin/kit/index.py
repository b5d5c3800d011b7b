"""The index of the admin and its sidebar: our models grouped by what people do.

Our pages are linked on top, the overview first. The models of django-celery-beat and
django-celery-results are marked as machinery and come last.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from django.contrib import admin
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from jobs.admin.kit.celery_pages import APPS
from jobs.pages.kit import nav

_NOTICES: Final = ("WebhookEndpoint", "MailSubscription")
GROUPS: Final = (
    (_("See and act on work"), ("Run", "Submission", "Job", "Missed", "Backfill")),
    (_("Plan windows"), ("Calendar", "Window")),
    (_("Owners and what is theirs"), ("Owner", "ApiToken", "Target", "TargetGroup", *_NOTICES)),
    (_("Watch the installation"), ("Worker", "AuditEntry", "Cursor")),
)
"""Our models, by what people do with them."""


def group_index(site: admin.AdminSite) -> None:
    """Group the models on a site's index; repeating the call changes nothing."""
    given = site.get_app_list
    if getattr(given, "is_grouped", False):
        return

    def grouped(request: HttpRequest, app_label: str | None = None) -> list[Any]:
        found = given(request, app_label)
        # The page of one app has its models only.
        return found if app_label is not None else _in_groups(found, request)

    grouped.is_grouped = True  # type: ignore[attr-defined]
    site.get_app_list = grouped  # type: ignore[method-assign]


def _in_groups(found: Sequence[dict[str, Any]], request: HttpRequest) -> list[dict[str, Any]]:
    """Return the apps of a site with ours in groups, and machinery last."""
    ours: list[dict[str, Any]] = []
    others: list[dict[str, Any]] = []
    machinery: list[dict[str, Any]] = []
    for app in found:
        if app["app_label"] == "jobs":
            ours += [*_pages(app, request), *_groups_of(app)]
        elif app["app_label"] in APPS:
            machinery.append({**app, "name": _("Machinery: %s") % app["name"]})
        else:
            others.append(app)
    return [*ours, *others, *machinery]


def _groups_of(app: dict[str, Any]) -> list[dict[str, Any]]:
    left = {model["object_name"]: model for model in app["models"]}
    groups = [(name, [left.pop(key) for key in keys if key in left]) for name, keys in GROUPS]
    groups.append((_("More"), [*left.values()]))
    return [{**app, "name": name, "models": models} for name, models in groups if models]


def _pages(app: dict[str, Any], request: HttpRequest) -> list[dict[str, Any]]:
    """Return a group with links to our pages outside the admin; none if they have no addresses."""
    links = [
        {
            "name": entry["label"],
            "object_name": f"page-{entry['key']}",
            # Django marks the entry whose address is a part of the path as the current page.
            "admin_url": request.build_absolute_uri(entry["url"]),
            "add_url": None,
            "view_only": True,
        }
        for entry in nav.links("", owner=None)
    ]
    return [{**app, "name": _("Pages"), "models": links}] if links else []


group_index(admin.site)
