"""The navigation: one entry for each page of the first level; a page that is not there is absent.

An entry: the name of an address in `jobs/urls.py`, its label, and the key that opens it after "g".
"""

from __future__ import annotations

from typing import Any, Final

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
