"""The page of the overview."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from django.http import HttpResponse

from jobs.core import barrier
from jobs.core.states import State
from jobs.forecast.soon import opens_next
from jobs.models import Owner
from jobs.pages.kit import nav
from jobs.pages.kit.visit import Visit, page
from jobs.pages.overview.picture import outcome_bars
from jobs.pages.overview.words import why_now
from jobs.system.rollups.histogram import Percentiles
from jobs.system.rollups.reads import Minute
from jobs.system.verdict.facts import Problem
from jobs.system.verdict.reading import OWNERS, Read, owner_ids, read
from jobs.system.verdict.rules import problems_of

PERMISSIONS: Final[Mapping[str, str]] = {
    "job": "jobs.view_job",
    "jobs": "jobs.view_job",
    "owner": "jobs.view_owner",
    "runs": "jobs.view_run",
    "submission": "jobs.view_submission",
    "webhooks": "jobs.view_webhookendpoint",
    "window": "jobs.view_window",
    "workers": "jobs.view_worker",
}
"""The permission that each page needs to which the verdict links."""


@page("overview", permission="jobs.view_run")
def overview(visit: Visit) -> HttpResponse:
    """Show the verdict, the numbers of now, the owners, what opens next, and what failed."""
    found = read(visit)
    problems = [(problem, _link(visit, problem)) for problem in problems_of(found.facts)]
    busy = None if found.facts.is_redis_away else _busy(found)
    # Openings are found by what applies to a run; only runs of the visitor's owners are read.
    with barrier.lifted():
        soon = opens_next(owner_ids(visit), now=found.facts.system.at, busy=busy)
    return visit.show(
        "jobs/pages/overview/page.html",
        live="jobs/pages/overview/live.html",
        problems=problems,
        more_count=len(problems[1:]),
        system=found.facts.system,
        counts=found.counts,
        waits=max((one.wait_seconds for one in found.standings), default=0.0),
        is_redis_away=found.facts.is_redis_away,
        objective_count=len(found.objectives or ()),
        missed_count=sum(one.burning is not None for one in found.objectives or ()),
        rolled=found.rolled,
        failed=sum(minute.outcomes.get(State.FAILED, 0) for minute in found.rolled.minutes),
        bars=outcome_bars(found.rolled.minutes),
        newest=[(minute, _times(minute)) for minute in found.rolled.minutes[::-1]],
        owners=list(_owner_rows(visit, found)),
        has_more_owners=len(found.standings) == OWNERS,
        soon=soon,
        failures=found.rolled.failures,
    )


def _busy(found: Read) -> list[Owner]:
    return [one.owner for one in found.standings if one.seen is not None and one.seen.has_work]


def _owner_rows(visit: Visit, found: Read) -> Iterable[dict[str, Any]]:
    may_open = visit.access.permits(PERMISSIONS["owner"])
    for one in found.standings:
        held = None if found.held is None else found.held.get(one.owner.pk, {})
        yield {
            "owner": one.owner,
            "url": nav.address("owner", one.owner.slug) if may_open else None,
            "running": one.seen and one.seen.running,
            "backlog": one.seen and one.seen.backlog,
            "wait_seconds": one.seen and one.seen.oldest_wait_seconds,
            "received": one.received,
            "entitled": one.entitled,
            "held": None if held is None else held.get(State.HELD, 0),
            "failed": None if found.rolled.until is None else found.failed.get(one.owner.pk, 0),
            "why": why_now(one),
        }


def _times(minute: Minute) -> list[float | None]:
    return [part for times in (minute.wait, minute.run) for part in _parts(times)]


def _parts(times: Percentiles | None) -> list[float | None]:
    return [None, None, None] if times is None else [times.p50, times.p95, times.p99]


def _link(visit: Visit, problem: Problem) -> str:
    """Return the address of the rows that a problem is about; empty if they are not the visitor's.

    The rows of a problem are of all owners that the overview is of.
    """
    if not problem.page or not visit.access.permits(PERMISSIONS[problem.page]):
        return ""
    keys = () if problem.key is None else (problem.key,)
    return visit.address(problem.page, *keys, **problem.query) or ""
