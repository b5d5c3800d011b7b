"""The actions of a noun in the admin: its buttons and its menu lead to the pages that ask."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from django.contrib import messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.options import IS_POPUP_VAR
from django.contrib.admin.utils import unquote
from django.core.exceptions import ValidationError
from django.db import models
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path, reverse
from django.utils.http import urlencode
from django.utils.translation import gettext as _
from django_object_actions import DjangoObjectActions

from jobs.actions import Action, Noun, available, may_create
from jobs.admin.kit.base import OwnedAdmin
from jobs.models.access import access_of
from jobs.pages.kit.actions import address_of, ask_all, offered_for_many
from jobs.pages.kit.visit import Visit, page


class ActionAdmin(DjangoObjectActions, OwnedAdmin):
    """Pages of rows with actions. Mix in before other admin classes."""

    noun: ClassVar[Noun]

    class Media:
        # In place of the style sheet of DjangoObjectActions.
        css = {"all": ("jobs/admin.css",)}

    def get_actions(self, request: HttpRequest) -> dict[str, Any]:
        found = super().get_actions(request)
        if self.actions is None or IS_POPUP_VAR in request.GET:
            return found
        stock = self._stock(request)
        every = offered_for_many(self.noun, by=access_of(request.user))
        offered = [one for one in every if one.method not in stock]
        return {one.name: (self._leading(one), one.name, _(one.label)) for one in offered} | found

    def get_change_actions(self, request: HttpRequest, object_id: str, form_url: str) -> list[str]:
        row = self.get_object(request, object_id)
        if row is None:
            return []
        stock = self._stock(request, row)
        found = available(self.noun, row, by=access_of(request.user))
        return [one.name for one in found if one.method not in stock]

    def _stock(self, request: HttpRequest, row: Any = None) -> set[str]:
        """Return the methods for which the admin has forms of its own."""
        forms = {"PATCH": self.has_change_permission, "DELETE": self.has_delete_permission}
        return {method for method, may in forms.items() if may(request, row)}

    def _get_tool_dict(self, tool_name: str) -> dict[str, Any]:
        return {
            "name": tool_name,
            "label": _(self._action(tool_name).label),
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

    def ask(self, request: HttpRequest, pk: str, tool: str) -> HttpResponse:
        row = self.get_object(request, unquote(pk))
        if row is None:
            raise Http404
        action = self._action(tool)
        pages = f"{self.admin_site.name}:{self.opts.app_label}_{self.opts.model_name}"
        own = reverse(f"{pages}_change", args=[row.pk])
        back = reverse(f"{pages}_changelist") if action.is_deletion else own
        address = address_of(self.noun, action, row)
        return HttpResponseRedirect(f"{address}?{urlencode({'back': back})}")

    def response_action(self, request: HttpRequest, queryset: Any, *args: Any) -> Any:
        """Report keys that cannot be keys of this model, instead of failing."""
        try:
            return super().response_action(request, queryset, *args)
        except (ValidationError, ValueError):
            messages.warning(request, _("The selection cannot be read. Nothing has been changed."))
            return None

    def _leading(self, action: Action) -> Callable[..., HttpResponse]:
        @page(self.noun.section or self.noun.plural, permission=self.noun.view, methods=("POST",))
        def ask(visit: Visit, rows: models.QuerySet[Any]) -> HttpResponse:
            request = visit.request
            across = request.POST.get("select_across", "0")
            keys = [""] if across == "1" else request.POST.getlist(ACTION_CHECKBOX_NAME)
            hidden = [("action", action.name), ("select_across", across)]
            hidden += [(ACTION_CHECKBOX_NAME, key) for key in keys]
            back = request.get_full_path()
            return ask_all(visit, self.noun, action, rows, back=back, hidden=hidden)

        return lambda _admin, request, rows: ask(request, rows)

    def _action(self, name: str) -> Action:
        action = self.noun.action(name)
        if action is None:
            raise Http404
        return action


class CreatedOnPage(ActionAdmin):
    """Rows that are created on a page of ours, to which "Add" leads."""

    def has_add_permission(self, request: HttpRequest, *args: Any) -> bool:
        return may_create(self.noun, by=access_of(request.user))

    def add_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        back = reverse(f"{self.admin_site.name}:jobs_{self.opts.model_name}_changelist")
        address = reverse(f"jobs:create_{self.noun.name}")
        return HttpResponseRedirect(f"{address}?{urlencode({'back': back})}")
