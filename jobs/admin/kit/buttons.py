"""Buttons on the page of a row: each is a link to a page that asks before anything happens."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path
from django_object_actions import DjangoObjectActions

from jobs.admin.kit.base import OwnedAdmin


class ButtonAdmin(DjangoObjectActions, OwnedAdmin):
    """Pages of rows with buttons, which `get_change_actions` names."""

    class Media:
        # In place of the style sheet of DjangoObjectActions.
        css = {"all": ("jobs/admin.css",)}

    def button_label(self, name: str) -> Any:
        """Return the text on a button; raise Http404 for a name that is none."""
        raise NotImplementedError

    def ask(self, request: HttpRequest, pk: str, tool: str) -> HttpResponse:
        """Return the page that asks, or lead to it."""
        raise NotImplementedError

    def _get_tool_dict(self, tool_name: str) -> dict[str, Any]:
        return {
            "name": tool_name,
            "label": self.button_label(tool_name),
            "standard_attrs": {"class": "fs-verb", "title": ""},
            "custom_attrs": {},
            "button_type": "a",
        }

    def _get_action_urls(self) -> list[URLPattern]:
        """Replace the library's view, which acts without asking, and checks no owner."""
        name = f"{self.opts.app_label}_{self.opts.model_name}_actions"
        self.tools_view_name = f"{self.admin_site.name}:{name}"
        view = self.admin_site.admin_view(self.ask)
        return [path("<path:pk>/actions/<slug:tool>/", view, name=name)]
