"""Submitting a bulk by hand: a form, then its forecast, then the submit."""

from __future__ import annotations

import secrets
from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import URLPattern, path
from django.utils.html import format_html
from django.utils.translation import gettext as _

from jobs import will_it_fit
from jobs.admin.kit import html
from jobs.admin.kit.base import OwnedAdmin
from jobs.admin.runs.forecast import facts_of
from jobs.admin.runs.submit_form import Bulk, SubmitForm
from jobs.core.errors import FairshiftError
from jobs.forecast.estimate import Forecast
from jobs.models import AuditEntry, Scope, access
from jobs.runs.submission import submit_on


class SubmitPage(OwnedAdmin):
    """Adds the page that submits a bulk. Mix in before other admin classes."""

    change_list_template = "admin/jobs/submission/change_list.html"

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.submit_view)
        return [path("submit/", view, name="jobs_submission_submit"), *super().get_urls()]

    def has_submit_permission(self, request: HttpRequest) -> bool:
        """Say whether the person may submit for any owner."""
        user: Any = request.user
        return user.has_perm("jobs.add_submission") and access.has_scope_somewhere(
            user, Scope.SUBMIT
        )

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> Any:
        may = {"has_submit_permission": self.has_submit_permission(request)}
        return super().changelist_view(request, {**may, **(extra_context or {})})

    def submit_view(self, request: HttpRequest) -> HttpResponse:
        """Show the form and its forecast; submit on a POST of the bulk that the forecast is of."""
        if not self.has_submit_permission(request):
            raise PermissionDenied
        if request.method != "POST":
            initial = {"nonce": secrets.token_urlsafe(16)}
            return self._page(request, SubmitForm(user=request.user, initial=initial))
        form = SubmitForm(request.POST, user=request.user)
        forecast = None
        if form.is_valid():
            is_shown = form.cleaned_data["foreseen"] == form.bulk.mark
            try:
                if is_shown and "submit" in request.POST:
                    return self._submit(request, form)
                forecast = _forecast_of(form.bulk)
            except FairshiftError as error:
                form.refuse(error)
            else:
                if "submit" in request.POST:
                    text = _("The form has changed since its forecast. Nothing is submitted.")
                    messages.warning(request, text)
                form.data = {**request.POST.dict(), "foreseen": form.bulk.mark}
        return self._page(request, form, forecast)

    def _submit(self, request: HttpRequest, form: SubmitForm) -> HttpResponse:
        bulk, user = form.bulk, request.user
        with transaction.atomic():
            # The second of a double click waits at the key, and gets the first one's submission.
            submission = submit_on(
                bulk.targets,
                bulk.task,
                bulk.calls,
                owner=bulk.owner,
                label=bulk.label,
                idempotency_key=f"admin:{user.pk}:{form.cleaned_data['nonce']}",
                **bulk.options,
            )
            written = AuditEntry.objects.filter(
                object_type="submission", object_id=str(submission.pk), action="submit"
            )
            if not written.exists():
                AuditEntry.write(
                    "submit", on=submission, actor=user, task=bulk.task, count=len(bulk.targets)
                )
        link = html.link(submission)
        messages.success(request, format_html("{} {}", _("Submitted:"), link))
        if self.has_view_permission(request):
            return redirect("admin:jobs_submission_change", submission.pk)
        return redirect("admin:jobs_submission_submit")

    def _page(
        self, request: HttpRequest, form: SubmitForm, forecast: Forecast | None = None
    ) -> HttpResponse:
        facts = list(facts_of(forecast)) if forecast else []
        context = {"title": _("Submit"), "form": form, "forecast": forecast, "facts": facts}
        return self.page(request, "admin/jobs/submission/submit.html", context)


def _forecast_of(bulk: Bulk) -> Forecast:
    return will_it_fit(bulk.task, owner=bulk.owner, targets=bulk.targets, **bulk.options)
