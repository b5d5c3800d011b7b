"""Submit many runs by hand: a form, then its forecast, then the submit."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final

from django.contrib import messages
from django.db import transaction
from django.http import HttpResponse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as lazy

from jobs.core import barrier
from jobs.core.errors import FairshiftError
from jobs.core.language import number
from jobs.forecast.estimate import Forecast
from jobs.forecast.will_it_fit import will_it_fit
from jobs.models import AuditEntry, Scope
from jobs.models.access import Access
from jobs.owners.caps import refuse_more_runs
from jobs.pages.kit.acts import done
from jobs.pages.kit.errors import forbidden
from jobs.pages.kit.visit import Visit, page
from jobs.pages.submissions.submit_form import SubmitForm
from jobs.rollouts.waves import counts_of
from jobs.runs.submission import submit_on

PERMISSION: Final = "jobs.add_submission"
COUNTED: Final = (
    ("never", lazy("Never start")),
    ("unapproved", lazy("Of these, not approved")),
    ("without_calendar", lazy("Without a calendar")),
)
"""Counts of a forecast that may come with names of targets."""


def may_submit(access: Access) -> bool:
    """Say whether a person may submit runs of some owner."""
    return access.permits(PERMISSION) and access.has_somewhere(Scope.SUBMIT)


@page("submissions", permission=PERMISSION, methods=("GET", "POST"))
def submit(visit: Visit) -> HttpResponse:
    """Show the form and its forecast; submit on a POST of what the forecast is of."""
    if not may_submit(visit.access):
        raise forbidden()
    sent = visit.request.POST if visit.request.method == "POST" else None
    initial = {"once": secrets.token_urlsafe(16), "owner": visit.owner and visit.owner.slug}
    form = SubmitForm(sent, visit=visit, initial=initial)
    forecast = None
    if form.is_bound and form.is_valid():
        try:
            # A forecast counts what others' runs need of the slots, and names no other owner.
            with barrier.lifted():
                if "submit" in visit.request.POST and form.is_foreseen:
                    return _submitted(visit, form)
                forecast = _forecast_of(form)
        except FairshiftError as error:
            form.refuse(error)
        else:
            if "submit" in visit.request.POST:
                text = _("The form has changed since its forecast. Nothing is submitted.")
                messages.warning(visit.request, text)
            form.data = {**visit.request.POST.dict(), "foreseen": form.bulk.mark}
    facts = [] if forecast is None else list(_facts_of(forecast))
    if forecast is not None and form.bulk.waves is not None:
        counts = counts_of(form.bulk.waves.sizes, len(form.bulk.targets))
        facts.append((_("Waves"), ", ".join(map(number, counts))))
    return visit.show(
        "jobs/pages/submissions/submit.html",
        form=form,
        forecast=forecast if not form.errors else None,
        facts=facts,
    )


def _forecast_of(form: SubmitForm) -> Forecast:
    bulk = form.bulk
    return will_it_fit(
        bulk.task, owner=bulk.owner, targets=bulk.targets, waves=bulk.waves, **bulk.options
    )


def _submitted(visit: Visit, form: SubmitForm) -> HttpResponse:
    bulk, actor = form.bulk, visit.access.actor
    refuse_more_runs(bulk.owner.pk, adding=len(bulk.targets))
    with transaction.atomic():
        # The second of a double click waits at the key, and gets the first one's submission.
        submission = submit_on(
            bulk.targets,
            bulk.task,
            bulk.calls,
            owner=bulk.owner,
            label=bulk.label,
            waves=bulk.waves,
            actor=actor,
            idempotency_key=f"page:{actor.pk}:{form.cleaned_data['once']}",
            **bulk.options,
        )
        written = AuditEntry.objects.filter(
            object_type="submission", object_id=str(submission.pk), action="submit"
        )
        if not written.exists():
            facts: dict[str, Any] = {"task": bulk.task, "count": len(bulk.targets)}
            AuditEntry.write("submit", on=submission, actor=actor, **facts)
    url = visit.address("submission", submission.pk) or ""
    link = format_html('{} <a href="{}">{}</a>', _("Submitted:"), url, submission)
    is_shown = visit.access.permits("jobs.view_submission")
    return done(visit, link, to=url if is_shown else visit.request.path)


def _facts_of(found: Forecast) -> Iterator[tuple[str, Any]]:
    """Yield the lines of a forecast, a label and a value each, without empty lines."""
    yield _("Targets"), number(found.waiting)
    yield _("Windows that apply"), number(found.windows)
    yield _("Starts"), _moment(found.starts_at)
    yield _("Finishes by"), _("unknown") if found.awaiting else _moment(found.finishes_at)
    if found.latest_at is not None:
        yield _("Between"), f"{_moment(found.earliest_at)} – {_moment(found.latest_at)}"
    if found.finishes_at is None and found.ends_at is not None:
        yield _("Those that can, by"), _moment(found.ends_at)
    yield _("Left over after the first window"), number(found.left_over)
    if found.next_opening is not None:
        yield _("Next window for them"), _moment(found.next_opening)
    if found.awaiting:
        yield _("In waves that wait for an approval"), number(found.awaiting)
    if found.expired:
        yield _("Expired before they start"), number(found.expired)
    for name, label in COUNTED:
        count = getattr(found, name)
        yield str(label), _with_names(count, found.names.get(name, ()))
    yield _("Share of the workers"), f"{found.share:.0%}"


def _with_names(count: int, names: tuple[str, ...]) -> str:
    if not count or not names:
        return number(count)
    more = _(" and more") if count > len(names) else ""
    return f"{number(count)}: {', '.join(names)}{more}"


def _moment(at: datetime | None) -> str:
    return f"{timezone.localtime(at):%Y-%m-%d %H:%M:%S %Z}" if at else _("not within a year")
