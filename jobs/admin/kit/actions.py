"""The actions of a noun in the admin: its buttons and its menu lead to the pages that ask."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from django.contrib.admin.options import IS_POPUP_VAR
from django.contrib.admin.utils import unquote
from django.db import models
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.translation import gettext as _

from jobs.actions import Action, Noun, available
from jobs.admin.kit.buttons import ButtonAdmin
from jobs.models.access import access_of
from jobs.pages.kit.actions import SELECTED, address_of, selection_view


class ActionAdmin(ButtonAdmin):
    """Pages of rows with actions. Mix in before other admin classes."""

    noun: ClassVar[Noun]

    def get_actions(self, request: HttpRequest) -> dict[str, Any]:
        found = super().get_actions(request)
        if self.actions is None or IS_POPUP_VAR in request.GET:
            return found
        access = access_of(request.user)
        offered = [
            action
            for action in self.noun.actions
            if action.is_for_many
            and access.permits(action.permission)
            and access.has_somewhere(action.scope)
        ]
        return {one.name: (self._leading(one), one.name, _(one.label)) for one in offered} | found

    def get_change_actions(self, request: HttpRequest, object_id: str, form_url: str) -> list[str]:
        row = self.get_object(request, object_id)
        if row is None:
            return []
        is_changed_here = self.has_change_permission(request, row)
        return [
            one.name
            for one in available(self.noun, row, by=access_of(request.user))
            if not (one.method == "PATCH" and is_changed_here)
        ]

    def button_label(self, name: str) -> str:
        return _(self._action(name).label)

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

    def _leading(self, action: Action) -> Callable[..., HttpResponse]:
        ask = selection_view(self.noun)

        def lead(_admin: Any, request: HttpRequest, rows: models.QuerySet[Any]) -> HttpResponse:
            keys = list(rows.order_by().values_list(self.noun.key, flat=True)[: SELECTED + 1])
            return ask(request, action.name, keys=keys, back=request.get_full_path())

        return lead

    def _action(self, name: str) -> Action:
        action = self.noun.action(name)
        if action is None:
            raise Http404
        return action
