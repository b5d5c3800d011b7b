"""The list of submissions, newest first, each with its progress."""

from __future__ import annotations

from typing import Any

from django import forms
from django.http import HttpResponse
from django.utils.translation import gettext_lazy as _

from jobs.core.inputs import LABEL_LIMIT
from jobs.core.sql import now
from jobs.models import Submission
from jobs.pages.kit import lists
from jobs.pages.kit.nav import admin_list
from jobs.pages.kit.visit import Visit, page
from jobs.runs.reads.choices import AGES
from jobs.runs.reads.counts import states_by


class SubmissionFilterForm(lists.FilterForm):
    """The filters of a list of submissions; a submission must match all of them."""

    label = forms.CharField(label=_("Label"), max_length=LABEL_LIMIT)
    task = forms.CharField(label=_("Task"), max_length=255)
    age = forms.ChoiceField(
        label=_("Submitted"),
        choices=[("", _("any time")), *((name, label) for name, (_span, label) in AGES.items())],
    )

    def narrow(self, rows: Any) -> Any:
        """Narrow submissions by the filter, once the form is valid."""
        given = self.cleaned_data
        for name in ("label", "task"):
            if given[name]:
                rows = rows.filter(**{name: given[name]})
        if given["age"]:
            rows = rows.filter(created_at__gte=now() - AGES[given["age"]][0])
        return rows


@page("submissions", permission="jobs.view_submission")
def submissions(visit: Visit) -> HttpResponse:
    """Show the submissions of a filter."""
    form = SubmissionFilterForm(visit)
    found: lists.ListPage[Submission] = lists.ListPage([], None, None)
    if form.is_valid():
        rows = form.narrow(visit.rows(Submission.objects.select_related("owner")))
        found = lists.newest_first(visit, rows, of="submissions")
    counts = states_by("submission", [row.pk for row in found.rows])
    lines = [(row, None if counts is None else counts.get(row.pk, {})) for row in found.rows]
    return visit.show(
        "jobs/pages/submissions/list.html",
        form=form,
        list=found,
        lines=lines,
        admin_url=admin_list(visit.access.actor, "submission"),
    )
