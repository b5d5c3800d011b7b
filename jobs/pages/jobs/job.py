"""One job: its schedule, its next times by two clocks, its last runs, what it missed."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

from django.http import HttpResponse

from jobs.actions import find
from jobs.actions.backfills import BACKFILLS
from jobs.actions.jobs import JOBS
from jobs.calendars import gate
from jobs.calendars.visibility import visible_rows
from jobs.core import barrier
from jobs.core.sql import now
from jobs.core.states import State
from jobs.models import Backfill, Calendar, Job, Missed, Run
from jobs.pages.jobs.lines import lines_of
from jobs.pages.kit.actions import buttons
from jobs.pages.kit.visit import Visit, page
from jobs.recurring import timetable
from jobs.recurring.failing_long import failing_since
from jobs.runs.reads.counts import RESULTS

SHOWN: Final = 10
"""Missed spans and backfills, the newest; the admin has all."""


@page("jobs", permission="jobs.view_job")
def job(visit: Visit, key: int) -> HttpResponse:
    """Show one job."""
    found: Job = find(JOBS, key, by=visit.access)
    moment = now()
    [line] = lines_of([found], now=moment)
    runs = _last_runs(found)
    return visit.show(
        "jobs/pages/jobs/job.html",
        live="jobs/pages/jobs/job_live.html",
        job=found,
        line=line,
        timetable=timetable.timetable_of_job(found, now=moment),
        place=timetable.place_in_words(found),
        runs=runs,
        failing_since=failing_since(found) if line.is_failing else None,
        last_failed=next((run for run, _took in runs if run.state == State.FAILED), None),
        missed=_newest(Missed.objects.filter(job=found).order_by("-first_at")),
        backfills=[
            (one, buttons(visit, BACKFILLS, one))
            for one in _newest(Backfill.objects.filter(job=found).order_by("-pk"))
        ],
        calendars=_calendars(visit, found),
        buttons=buttons(visit, JOBS, found),
        admin_url=visit.admin_address("job_change", found.pk),
        all_missed=visit.admin_address("missed_changelist", job=found.pk),
        all_backfills=visit.admin_address("backfill_changelist", job=found.pk),
    )


def _last_runs(found: Job) -> list[tuple[Run, timedelta | None]]:
    """Return the last runs of a job, the newest first, and how long each took."""
    rows = Run.objects.filter(job=found).order_by("-id")
    shown = ("id", "state", "due_at", "created_at", "started_at", "ended_at", "error_type")
    return [
        (run, run.ended_at - run.started_at if run.ended_at and run.started_at else None)
        for run in rows.only(*shown)[:RESULTS]
    ]


def _newest(rows: Any) -> list[Any]:
    return list(rows[:SHOWN])


def _calendars(visit: Visit, found: Job) -> list[Calendar]:
    """Return the calendars that apply to a job and that the visitor sees."""
    with barrier.lifted():
        target = found.target_id
        keys = gate.calendars_of(found.owner_id, job_id=found.pk, target_ids=[target])[target]
        rows = visible_rows(Calendar.objects.filter(pk__in=keys), visit.access)
        return list(rows.order_by("name", "pk"))
