"""Importing an iCalendar file into a calendar: previewed first, then confirmed."""

from __future__ import annotations

from typing import Any, Final

from django import forms
from django.contrib import messages
from django.core import signing
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import URLPattern, path
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as lazy

from jobs.admin.kit.base import OwnedAdmin
from jobs.calendars.ical import SIZE_LIMIT
from jobs.calendars.ical_import import SOURCE_LIMIT, ImportReport, import_ical, preview_ical
from jobs.core.errors import IcalError, OptionError
from jobs.models import Calendar, Scope, WindowEffect
from jobs.models.access import access_of
from jobs.models.fields import no_nul

PREVIEW_SECONDS: Final = 86_400
SHOWN: Final = 1_000
SALT: Final = "fairshift.ical"
MAY: Final = ("jobs.add_window", "jobs.change_window", "jobs.delete_window")


class IcalForm(forms.Form):
    """A file, the effect of its events, and the name of its source."""

    file = forms.FileField(label=lazy("File"), help_text=lazy("iCalendar (.ics), at most 1 MB."))
    effect = forms.ChoiceField(
        label=lazy("Its events are"),
        choices=[(WindowEffect.WINDOW, lazy("windows")), (WindowEffect.FREEZE, lazy("freezes"))],
        widget=forms.RadioSelect,
        initial=WindowEffect.WINDOW,
    )
    source = forms.CharField(
        label=lazy("Source"),
        required=False,
        max_length=SOURCE_LIMIT,
        validators=[no_nul],
        help_text=lazy(
            "A later file of the same source replaces the windows of the earlier one. "
            "Empty: the name of the file."
        ),
    )

    def clean_file(self) -> Any:
        file = self.cleaned_data["file"]
        if file.size > SIZE_LIMIT:
            raise forms.ValidationError(_("This file is larger than 1 MB. Split it."))
        return file

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        if not cleaned.get("source") and cleaned.get("file"):
            cleaned["source"] = cleaned["file"].name[:SOURCE_LIMIT]
        return cleaned


class IcalUrls(OwnedAdmin):
    """Adds the page of the import. Mix in before other admin classes."""

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.ical_view)
        return [path("<int:pk>/import/", view, name="jobs_calendar_import"), *super().get_urls()]

    def has_import_permission(self, request: HttpRequest, calendar: Calendar) -> bool:
        """Say whether the person may add, change and remove windows of a calendar."""
        user: Any = request.user
        return user.has_perms(MAY) and access_of(user).has(Scope.ADMIN, calendar.owner_id)

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        calendar = kwargs.get("obj")
        may = calendar is not None and self.has_import_permission(request, calendar)
        context["has_import_permission"] = may
        return super().render_change_form(request, context, *args, **kwargs)

    def ical_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Take a file and show what it would change; import it when it is confirmed."""
        calendar = get_object_or_404(self.get_queryset(request).select_related("owner"), pk=pk)
        if not self.has_import_permission(request, calendar):
            raise PermissionDenied
        if "kept" in request.POST:
            return self._confirmed(request, calendar)
        is_sent = request.method == "POST"
        form = IcalForm(request.POST, request.FILES) if is_sent else IcalForm()
        context: dict[str, Any] = {"form": form}
        if is_sent and form.is_valid():
            given = {
                "data": form.cleaned_data["file"].read(),
                "effect": form.cleaned_data["effect"],
                "source": form.cleaned_data["source"],
            }
            context |= _preview_of(calendar, given)
            context["kept"] = _sign(given, scope=[calendar.pk, str(request.user.pk)])
        return self._ical_page(request, calendar, context)

    def _confirmed(self, request: HttpRequest, calendar: Calendar) -> HttpResponse:
        given = _unsign(request.POST["kept"], scope=[calendar.pk, str(request.user.pk)])
        if given is None:
            messages.error(request, _("This preview is too old. Upload the file again."))
            return redirect(request.path)
        try:
            report = import_ical(calendar, **given, actor=request.user)
        except (IcalError, OptionError):
            # Valid in the preview, invalid now; the page says why.
            messages.error(request, _("Something has changed since. Nothing was imported."))
            return self._ical_page(request, calendar, _preview_of(calendar, given))
        messages.success(request, _summary(report))
        return redirect("admin:jobs_calendar_change", calendar.pk)

    def _ical_page(
        self, request: HttpRequest, calendar: Calendar, context: dict[str, Any]
    ) -> HttpResponse:
        context |= {"calendar": calendar, "title": _("Import windows")}
        return self.page(request, "admin/jobs/calendar/import.html", context)


def _preview_of(calendar: Calendar, given: dict[str, Any]) -> dict[str, Any]:
    """Return what the page shows of a file: the changes, or its problems."""
    try:
        report = preview_ical(calendar, **given)
    except IcalError as error:
        return {"problems": error.problems, "source": given["source"]}
    except OptionError as error:
        return {"problems": [(None, str(error))], "source": given["source"]}
    return {
        "report": report,
        "changes": report.changes[:SHOWN],
        "more": max(0, len(report.changes) - SHOWN),
        "source": given["source"],
        "effect": WindowEffect(given["effect"]).label,
    }


def _sign(given: dict[str, Any], *, scope: list[Any]) -> str:
    """Return the signed form field that holds a file, for one person and calendar."""
    text = given["data"].decode("latin-1")
    return signing.dumps({**given, "data": text, "scope": scope}, salt=SALT, compress=True)


def _unsign(text: str, *, scope: list[Any]) -> dict[str, Any] | None:
    try:
        found: dict[str, Any] = signing.loads(text, salt=SALT, max_age=PREVIEW_SECONDS)
    except signing.BadSignature:
        return None
    if found.pop("scope") != scope:
        return None
    return {**found, "data": found["data"].encode("latin-1")}


def _summary(report: ImportReport) -> str:
    return _(
        "Imported: %(added)s added, %(changed)s changed, %(removed)s removed, "
        "%(unchanged)s as they were."
    ) % {
        name: f"{getattr(report, name):,}" for name in ("added", "changed", "removed", "unchanged")
    }
