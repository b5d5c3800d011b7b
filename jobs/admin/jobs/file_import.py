"""Importing jobs from a file or pasted text: previewed first, then confirmed."""

from __future__ import annotations

import csv
from typing import Any, Final

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.widgets import AutocompleteSelect
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import URLPattern, path
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as lazy

from jobs.admin.jobs.open_import import content_of, opened, report_of, store
from jobs.admin.kit.base import OwnedAdmin
from jobs.api.csv_cells import harmless
from jobs.definitions.file_import import COLUMNS, Report, import_jobs
from jobs.models import Job, JobImport, Owner, Scope
from jobs.models.access import access_of
from jobs.models.fields import no_nul

BYTES_LIMIT: Final = 64 * 2**20
SHOWN: Final = 1_000
NAME_LIMIT: Final = 200


class ImportForm(forms.Form):
    """An owner and jobs, as a file or as text."""

    owner = forms.ModelChoiceField(
        label=lazy("Owner"),
        queryset=Owner.objects.none(),
        # As in the form of a job: the page does not list thousands of owners.
        widget=AutocompleteSelect(Job._meta.get_field("owner"), admin.site),
    )
    file = forms.FileField(
        label=lazy("File"), required=False, help_text=lazy("CSV or JSON in UTF-8, at most 64 MB.")
    )
    text = forms.CharField(
        label=lazy("Or pasted"),
        required=False,
        strip=False,
        validators=[no_nul],
        # Django refuses a form of more than 2.5 MB before this form is called.
        help_text=lazy("At most 2 MB; more as a file."),
        widget=forms.Textarea(attrs={"rows": 12, "cols": 100, "spellcheck": "false"}),
    )

    def clean_file(self) -> Any:
        file = self.cleaned_data["file"]
        if file is not None and file.size > BYTES_LIMIT:
            raise forms.ValidationError(_("This file is larger than 64 MB. Split it."))
        return file

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        if "file" not in self.errors and bool(cleaned.get("file")) == bool(cleaned.get("text")):
            raise forms.ValidationError(_("Give either a file or text."))
        return cleaned


class JobImportAdmin(OwnedAdmin):
    """Adds the pages of the import. Mix in before other admin classes."""

    change_list_template = "admin/jobs/job/change_list.html"

    def get_urls(self) -> list[URLPattern]:
        pages = (
            ("import/", self.import_view, "jobs_job_import"),
            ("import/<int:pk>/", self.import_confirm_view, "jobs_job_import_confirm"),
            ("import/<int:pk>/problems.csv", self.problems_view, "jobs_job_import_problems"),
        )
        view = self.admin_site.admin_view
        return [path(at, view(act), name=name) for at, act, name in pages] + super().get_urls()

    def has_import_permission(self, request: HttpRequest) -> bool:
        """Say whether the person may add and change jobs of any owner."""
        return self.has_add_permission(request) and self.has_change_permission(request)

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> Any:
        may = {"has_import_permission": self.has_import_permission(request)}
        return super().changelist_view(request, {**may, **(extra_context or {})})

    def import_view(self, request: HttpRequest) -> HttpResponse:
        """Take a file or text; the next page shows what it would change."""
        if not self.has_import_permission(request):
            raise PermissionDenied
        status = 200
        form = ImportForm(request.POST or None, request.FILES or None)
        owners = Owner.objects.order_by("slug")
        owners = access_of(request.user).narrowed(owners, path="pk", scope=Scope.ADMIN)
        form.fields["owner"].queryset = owners  # type: ignore[attr-defined]
        if request.method == "POST" and form.is_valid():
            job_import = _open(form, request.user)
            if job_import is not None:
                return redirect("admin:jobs_job_import_confirm", job_import.pk)
            status = 400
        context = {"form": form, "columns": COLUMNS, "title": _("Import jobs")}
        return self.page(request, "admin/jobs/job/import.html", context, status=status)

    def import_confirm_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Show what the import would change; import it on a POST."""
        if request.method == "POST":
            with transaction.atomic():
                job_import = self._open_import(request, pk, is_locked=True)
                report = import_jobs(
                    content_of(job_import),
                    owner=job_import.owner,
                    actor=request.user,
                    name=job_import.name,
                )
                if report.upserted is not None:
                    job_import.delete()
                    messages.success(request, _summary(report))
                    return redirect("admin:jobs_job_changelist")
                store(job_import, report)
            messages.error(request, _("Something has changed since. Nothing was imported."))
        else:
            job_import = self._open_import(request, pk)
            report = report_of(job_import)
        context = {
            "kept": job_import,
            "report": report,
            "problems": report.problems[:SHOWN],
            "more": max(0, len(report.problems) - SHOWN),
            "title": _("Import jobs"),
        }
        return self.page(request, "admin/jobs/job/import_confirm.html", context)

    def problems_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Return all problems as CSV."""
        job_import = self._open_import(request, pk)
        response = HttpResponse(content_type="text/csv; charset=utf-8")
        response["Content-Disposition"] = 'attachment; filename="problems.csv"'
        writer = csv.writer(response)
        writer.writerow(["row", "field", "problem"])
        for problem in report_of(job_import).problems:
            cells = (problem.field, problem.problem)
            writer.writerow([problem.row or "", *map(harmless, cells)])
        return response

    def _open_import(self, request: HttpRequest, pk: int, *, is_locked: bool = False) -> JobImport:
        """Return the person's open import; `is_locked` also locks its row and loads its file."""
        if not self.has_import_permission(request):
            raise PermissionDenied
        rows = JobImport.objects.filter(report__isnull=False).select_related("owner")
        # The second of a double click waits for the lock, and then finds no row.
        rows = rows.select_for_update(of=("self",)) if is_locked else rows.defer("content")
        user: Any = request.user
        job_import = rows.filter(pk=pk, user=user).first()
        if job_import is None:
            raise Http404(_("This import is done or too old. Begin again."))
        if not access_of(user).has(Scope.ADMIN, job_import.owner_id):
            raise PermissionDenied
        return job_import


def _open(form: ImportForm, user: Any) -> JobImport | None:
    """Store an import; None if it cannot be stored, with an error in the form."""
    file = form.cleaned_data["file"]
    content = file.read() if file else form.cleaned_data["text"].encode()
    name = (file.name if file else "")[:NAME_LIMIT]
    found = opened(content, owner=form.cleaned_data["owner"], user=user, name=name)
    if found is None:
        form.add_error(None, _("Another file of yours is being read. Try again later."))
        return None
    for problem in report_of(found).problems:
        if (problem.row, problem.field) == (None, "file"):
            # An unreadable file has nothing to confirm.
            found.delete()
            form.add_error("file" if file else "text", problem.problem)
            return None
    return found


def _summary(report: Report) -> str:
    counts = report.upserted
    return _("Imported: %(created)s created, %(updated)s changed, %(unchanged)s as they were.") % {
        name: f"{getattr(counts, name):,}" for name in ("created", "updated", "unchanged")
    }
