"""Cancel or retry all runs of a filter: counted first, then moved with a reason, in the audit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django import forms
from django.http import HttpResponse
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as lazy

from jobs.actions.filters.runs import RunFilter
from jobs.core import barrier
from jobs.core.language import number
from jobs.models import Owner, Run, Scope
from jobs.pages.kit.acts import ReasonForm, done, failed
from jobs.pages.kit.errors import forbidden
from jobs.pages.kit.lists import FilterForm
from jobs.pages.kit.visit import Visit, page
from jobs.runs import bulk

OWNERS: Final = 10
"""Most owners whose counts are shown."""


@dataclass(frozen=True, slots=True)
class Verb:
    """A verb for all runs of a filter."""

    find: Callable[[Any], list[bulk.Found]]
    act: Callable[..., bulk.Moved]
    name: str
    """The name of its address."""
    label: Any
    warning: Any
    none: Any
    """What to say if no run can be moved."""
    moved: Any
    is_bad: bool = False


CANCEL: Final = Verb(
    find=bulk.find_cancellable,
    act=bulk.cancel_found,
    name="runs_cancel",
    label=lazy("Cancel runs"),
    warning=lazy("Waiting runs never start. Runs that a worker has started are asked to stop."),
    none=lazy("No run of this filter can be cancelled: all have ended."),
    moved=lazy("%(moved)s of %(matched)s runs cancelled or asked to stop."),
    is_bad=True,
)
RETRY: Final = Verb(
    find=bulk.find_reopenable,
    act=bulk.retry_found,
    name="runs_retry",
    label=lazy("Retry runs"),
    warning=lazy("Each is queued again with a fresh set of attempts."),
    none=lazy("No run of this filter can be retried: none failed, expired or was cancelled."),
    moved=lazy("%(moved)s of %(matched)s runs queued again."),
)


class AllForm(ReasonForm):
    """A reason, and the newest run that was counted: runs submitted later are not moved."""

    newest = forms.UUIDField(widget=forms.HiddenInput)


@page("runs", permission="jobs.cancel_run", methods=("GET", "POST"))
def runs_cancel(visit: Visit) -> HttpResponse:
    """Cancel all runs of a filter."""
    return _all(visit, CANCEL)


@page("runs", permission="jobs.retry_run", methods=("GET", "POST"))
def runs_retry(visit: Visit) -> HttpResponse:
    """Retry all runs of a filter."""
    return _all(visit, RETRY)


def _all(visit: Visit, verb: Verb) -> HttpResponse:
    if not visit.access.has_somewhere(Scope.OPERATE):
        raise forbidden()
    search = FilterForm(visit, RunFilter)
    if not search.is_valid() or not search.is_narrow:
        return failed(visit, _("Choose a filter first."), to=reverse("jobs:runs"))
    back = f"{reverse('jobs:runs')}?{search.query}"
    rows = search.narrow(visit.access.narrowed(Run.objects.all(), scope=Scope.OPERATE))
    form = AllForm(visit.request.POST or None)
    is_sent = visit.request.method == "POST" and form.is_valid()
    if is_sent:
        rows = rows.filter(id__lte=form.cleaned_data["newest"])
    # The rows are narrowed already. Behind the barrier, the index of labels would not be used.
    with barrier.lifted():
        found = verb.find(rows)
    slugs = _slugs(found)
    found = [one for one in found if one.owner_id in slugs]
    if is_sent:
        return _acted(
            visit, verb, found, form.cleaned_data["reason"], back=back, query=search.query
        )
    if found and not form.is_bound:
        form.initial["newest"] = found[-1].run_id
    return visit.show(
        "jobs/pages/runs/all.html",
        form=form,
        verb=verb,
        back=back,
        count=len(found),
        is_most=len(found) == bulk.MOST,
        owners=_by_owner(found, slugs),
    )


def _acted(
    visit: Visit, verb: Verb, found: Sequence[bulk.Found], reason: str, *, back: str, query: str
) -> HttpResponse:
    if not found:
        return failed(visit, verb.none, to=back)
    with barrier.lifted():
        effect = verb.act(found, actor=visit.access.actor, reason=reason)
    text = verb.moved % {"moved": number(effect.moved), "matched": number(len(found))}
    if not effect.left:
        return done(visit, text, to=back)
    more = _("%s are left: send it again.") % number(effect.left)
    return done(visit, f"{text} {more}", to=f"{reverse(f'jobs:{verb.name}')}?{query}")


def _slugs(found: Sequence[bulk.Found]) -> dict[int, str]:
    """Return the slugs of the owners of these runs, as far as the barrier lets them be seen."""
    ids = {one.owner_id for one in found}
    return dict(Owner.objects.filter(pk__in=ids).values_list("pk", "slug"))


def _by_owner(found: Sequence[bulk.Found], slugs: dict[int, str]) -> list[tuple[str, int]]:
    """Return the owners with most of these runs, and their counts."""
    counts = Counter(one.owner_id for one in found).most_common(OWNERS)
    return [(slugs[owner], count) for owner, count in counts]
