"""The navigation: one entry for each page of the first level; a page that is not there is absent.

An entry: the name of an address in `jobs/urls.py`, its label, and the key that opens it after "g".
"""

from __future__ import annotations

from typing import Any, Final

from django.db.models import Model
from django.urls import NoReverseMatch, reverse
from django.utils.translation import gettext_lazy as _

ENTRIES: Final = (
    ("overview", _("Overview"), "o"),
    ("runs", _("Runs"), "r"),
    ("submissions", _("Submissions"), "s"),
    ("jobs", _("Jobs"), "j"),
    ("calendars", _("Calendars"), "c"),
    ("owners", _("Owners"), "n"),
    ("workers", _("Workers"), "w"),
    ("failures", _("Failures"), "f"),
    ("webhooks", _("Webhooks"), "h"),
    ("audit", _("Audit"), "a"),
)
SEARCH: Final = "search"
"""The name of the address that the search box asks."""


def address(name: str, *arguments: Any, **query: Any) -> str | None:
    """Return the address of a page of ours; None if there is no such page.

    Query parameters that are None are left out.
    """
    given = {key: value for key, value in query.items() if value is not None}
    try:
        return reverse(f"jobs:{name}", args=arguments, query=given or None)
    except NoReverseMatch:
        return None


def links(current: str, *, owner: str | None) -> list[dict[str, Any]]:
    """Return the links of the navigation. They keep the chosen owner."""
    found = ((name, label, key, address(name, owner=owner)) for name, label, key in ENTRIES)
    return [
        {"url": url, "label": label, "key": key, "is_current": name == current}
        for name, label, key, url in found
        if url is not None
    ]


def admin_row(user: Any, row: Model) -> str | None:
    """Return the address of a row's page in the admin; None without one that the user may open."""
    name = row._meta.model_name
    may = user.has_perm(f"{row._meta.app_label}.view_{name}")
    return admin_address(user, f"{name}_change", row.pk) if may else None


def admin_list(user: Any, name: str) -> str | None:
    """Return the address of a model's list in the admin; None for a user who may not see it."""
    return admin_address(user, f"{name}_changelist") if user.has_perm(f"jobs.view_{name}") else None


def admin_address(visitor: Any, name: str, *arguments: Any, **query: Any) -> str | None:
    """Return the address of a page of the admin, such as "job_change"; None if it is not theirs."""
    if not visitor.is_staff:
        return None
    try:
        return reverse(f"admin:jobs_{name}", args=arguments, query=query or None)
    except NoReverseMatch:
        return None
