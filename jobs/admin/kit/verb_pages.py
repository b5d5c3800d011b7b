"""Verbs in the admin: their buttons, their bulk actions and their confirmation pages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar, Final

from django import forms
from django.contrib import messages
from django.contrib.admin import helpers
from django.contrib.admin.options import IS_POPUP_VAR
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied, ValidationError
from django.db import models
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext as _

from jobs.admin.kit.bulk import act_on_many
from jobs.admin.kit.buttons import ButtonAdmin
from jobs.admin.kit.verbs import Act, Confirmed, Verb, sign, unsign
from jobs.core.counting import CAP, RoundCount, within
from jobs.core.errors import FairshiftError
from jobs.models import Scope, access

SAMPLE: Final = 10
"""Rows that a confirmation page lists."""
COUNT_MILLISECONDS: Final = 3_000


class VerbAdmin(ButtonAdmin):
    """Pages of rows that verbs act on. Mix in before other admin classes."""

    verbs: ClassVar[tuple[Verb, ...]] = ()
    verb_scope: ClassVar[Scope] = Scope.OPERATE

    # --- which verbs a person has ------------------------------------------------------------

    def may(self, request: HttpRequest, verb: Verb, row: Any = None) -> bool:
        """Say whether the person may use a verb on this row, or without a row on any."""
        user: Any = request.user
        if not user.has_perm(verb.permission):
            return False
        if row is None:
            return access.has_scope_somewhere(user, self.verb_scope)
        return access.has_scope(user, self.owner_of(row), self.verb_scope)

    def _ready(self, verb: Verb, rows: models.QuerySet[Any], request: HttpRequest) -> Any:
        mine = access.narrowed(
            rows, request.user, path=self.owner_path or "owner", scope=self.verb_scope
        )
        return verb.applies(mine)

    def get_actions(self, request: HttpRequest) -> dict[str, Any]:
        found = super().get_actions(request)
        if self.actions is None or IS_POPUP_VAR in request.GET:
            return found
        allowed = [verb for verb in self.verbs if self.may(request, verb)]
        return {verb.name: (_action(verb), verb.name, verb.label) for verb in allowed} | found

    def get_change_actions(self, request: HttpRequest, object_id: str, form_url: str) -> list[str]:
        row = self.get_object(request, object_id)
        return [
            verb.name
            for verb in self.verbs
            if row is not None
            and self.may(request, verb, row)
            and self._ready(verb, self._only(request, row), request).exists()
        ]

    def button_label(self, name: str) -> Any:
        return self._verb(name).label

    def _verb(self, name: str) -> Verb:
        for verb in self.verbs:
            if verb.name == name:
                return verb
        raise Http404

    def _only(self, request: HttpRequest, row: Any) -> models.QuerySet[Any]:
        return self.get_queryset(request).filter(pk=row.pk)

    # --- one row -----------------------------------------------------------------------------

    def ask(self, request: HttpRequest, pk: str, tool: str) -> HttpResponse:
        """Show the confirmation page of one row; act on the row after a confirmed POST."""
        verb = self._verb(tool)
        row = self.get_object(request, unquote(pk))
        if row is None or not self.has_view_permission(request, row):
            raise Http404
        if not self.may(request, verb, row):
            raise PermissionDenied
        page = f"{self.opts.app_label}_{self.opts.model_name}_change"
        back = reverse(f"{self.admin_site.name}:{page}", args=[row.pk])
        rows = self._ready(verb, self._only(request, row), request)
        confirmed = unsign(verb, request, request.POST.get("confirmed", ""))
        if not rows.exists():
            messages.warning(request, verb.refused(row))
            return HttpResponseRedirect(back)
        form_class = verb.form_for(row)
        form = form_class(request.POST if confirmed else None)
        if request.method == "POST":
            if confirmed is None or confirmed.mark != verb.mark(row):
                messages.warning(request, _("This page was out of date. Please look again."))
                form = form_class(initial=request.POST.dict())
            elif form.is_valid():
                act = _act(request, form, is_bulk=False)
                self._act_on_one(request, verb, row, act)
                return HttpResponseRedirect(back)
        return self._confirmation(
            request,
            verb,
            form,
            rows=[row],
            count=1,
            back=back,
            hidden={"confirmed": sign(verb, request, Confirmed(mark=verb.mark(row)))},
        )

    def _act_on_one(self, request: HttpRequest, verb: Verb, row: Any, act: Act) -> None:
        try:
            moved = verb.act([row.pk], act)
        except FairshiftError as error:
            messages.error(request, str(error))
            return
        if not moved:
            messages.warning(request, verb.refused(self.get_object(request, str(row.pk)) or row))
        elif verb.message is not None:
            messages.success(request, verb.message(row, act))
        else:
            messages.success(request, _("%(row)s: %(done)s.") % {"row": row, "done": verb.done})

    # --- many rows ---------------------------------------------------------------------------

    def confirm_many(
        self, request: HttpRequest, verb: Verb, selected: models.QuerySet[Any]
    ) -> HttpResponse | None:
        """Show the confirmation page of selected rows; act on them after a confirmed POST.

        With "select all" the form has no keys: the address has the filter, and the signed field
        the last key that matched when the page was shown. At the time limit the same form is shown
        again for the rows that are left, so that none is acted on twice.
        """
        if not self.may(request, verb):
            raise PermissionDenied
        rows = self._ready(verb, selected.order_by(), request)
        shown = unsign(verb, request, request.POST.get("confirmed", ""))
        form = verb.form(request.POST if shown else None)
        if shown is not None:
            rows = shown.left_of(rows)
            if form.is_valid():
                act = _act(request, form, is_bulk=True)
                after = self._act_on_many(request, verb, rows, act)
                if after is None:
                    return None
                shown = replace(shown, after=str(after))
                rows = shown.left_of(rows)
        elif "confirmed" in request.POST:
            messages.warning(request, _("This page was out of date. Please look again."))
            form = verb.form(initial=request.POST.dict())
        last = rows.order_by("-pk").values_list("pk", flat=True).first()
        if last is None:
            messages.warning(request, _("None of the selected rows can be %s.") % verb.done)
            return None
        shown = shown or Confirmed(until=str(last))
        count = within(COUNT_MILLISECONDS, rows.count)
        is_across = request.POST.get("select_across") == "1"
        keys = [""] if is_across else request.POST.getlist(helpers.ACTION_CHECKBOX_NAME)
        return self._confirmation(
            request,
            verb,
            form,
            rows=list(rows.order_by("-pk")[:SAMPLE]),
            count=RoundCount(CAP + 1, _("very many")) if count is None else count,
            back=request.get_full_path(),
            hidden={
                "confirmed": sign(verb, request, shown),
                "action": verb.name,
                "select_across": "1" if is_across else "0",
            },
            keys=keys,
        )

    def _act_on_many(
        self, request: HttpRequest, verb: Verb, rows: models.QuerySet[Any], act: Act
    ) -> Any:
        """Act and report it; return the last key if the time limit came before the end."""
        described = request.META.get("QUERY_STRING", "") or "all"
        if request.POST.get("select_across") != "1":
            described = "by hand"
        try:
            outcome = act_on_many(verb, rows, act, described=described[:400])
        except FairshiftError as error:
            messages.error(request, str(error))
            return None
        report = _("%(count)s %(rows)s %(done)s.") % {
            "count": f"{outcome.moved:,}",
            "rows": self.opts.verbose_name if outcome.moved == 1 else self.opts.verbose_name_plural,
            "done": verb.done,
        }
        if outcome.after is None:
            messages.success(request, report)
        else:
            left = _("Time limit reached: confirm the rest to go on.")
            messages.warning(request, f"{report} {left}")
        return outcome.after

    def response_action(self, request: HttpRequest, queryset: Any, *args: Any) -> Any:
        """Report keys that cannot be keys of this model, instead of failing."""
        try:
            return super().response_action(request, queryset, *args)
        except (ValidationError, ValueError):
            messages.warning(request, _("The selection cannot be read. Nothing has been changed."))
            return None

    # --- the confirmation page ---------------------------------------------------------------

    def _confirmation(
        self,
        request: HttpRequest,
        verb: Verb,
        form: forms.Form,
        *,
        rows: list[Any],
        count: int,
        back: str,
        hidden: dict[str, str],
        keys: list[str] | None = None,
    ) -> HttpResponse:
        context = {
            "title": verb.label,
            "verb": verb,
            "form": form,
            "rows": rows,
            "count": count,
            "more": count - len(rows),
            "noun": self.opts.verbose_name if count == 1 else self.opts.verbose_name_plural,
            "back": back,
            "hidden": hidden,
            "keys": keys or [],
            "keys_name": helpers.ACTION_CHECKBOX_NAME,
        }
        return self.page(request, "admin/jobs/confirm.html", context)


def _action(verb: Verb) -> Callable[..., HttpResponse | None]:
    def act(admin: VerbAdmin, request: HttpRequest, rows: models.QuerySet[Any]) -> Any:
        return admin.confirm_many(request, verb, rows)

    return act


def _act(request: HttpRequest, form: forms.Form, *, is_bulk: bool) -> Act:
    return Act(actor=request.user, data=form.cleaned_data, is_bulk=is_bulk)
