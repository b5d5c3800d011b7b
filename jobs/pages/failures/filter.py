"""The filter of failures: an error and a task, in the address."""

from __future__ import annotations

from typing import Any, Final

from django import forms
from django.utils.translation import gettext_lazy as _

from jobs.core.states import State
from jobs.models import Run, Scope
from jobs.models.fields import no_nul
from jobs.models.run import RunQuerySet
from jobs.pages.kit.lists import FilterForm
from jobs.pages.kit.visit import Visit
from jobs.runs.reads.listing import RunFilter, narrow

NO_ERROR: Final = "(none)"
"""In place of the class of an error: runs that failed without one, by hand."""


class FailureFilter(FilterForm):
    """The class of an error, and a task; both in full."""

    error = forms.CharField(label=_("Error, in full"), max_length=200, validators=[no_nul])
    task = forms.CharField(label=_("Task"), max_length=255, validators=[no_nul])

    @property
    def wanted(self) -> RunFilter:
        """The filter of the runs."""
        error, task = self.cleaned_data["error"], self.cleaned_data["task"]
        return RunFilter(
            states=[State.FAILED],
            task=task or None,
            error="" if error == NO_ERROR else error or None,
        )


def failed_runs(visit: Visit, wanted: RunFilter, *, scope: Scope = Scope.READ) -> RunQuerySet:
    """Return the failed runs of a filter, of the owners for which the visitor has a scope."""
    runs: RunQuerySet = narrow(visit.rows(Run.objects.all()), wanted, access=visit.access)
    return visit.access.narrowed(runs, scope=scope)


def query_of(form: FailureFilter) -> dict[str, Any]:
    """Return the filter as parameters of an address."""
    return {name: form.data[name] for name in form.fields if name in form.data}
