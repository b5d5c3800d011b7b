"""The preview of the schedule in a form, requested while a person types. Changes nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from django import forms
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.translation import gettext as _

from jobs.admin.jobs.form import KINDS_OF
from jobs.calendars.reads.occurrence_list import Timetable
from jobs.models import Job, ScheduleKind
from jobs.recurring.timetable import PREVIEWED, problem_of, timetable_of
from jobs.schedules import Schedule, ScheduleError, checked


class ScheduleForm(forms.Form):
    """The fields of a schedule, under the names that they have in the form of a job."""

    schedule = forms.ChoiceField(choices=ScheduleKind.choices)
    interval_minutes = forms.IntegerField(required=False)
    interval_seconds = forms.IntegerField(required=False)
    cron = forms.CharField(required=False)
    zone = forms.CharField(required=False)
    once_at = forms.SplitDateTimeField(required=False)
    start_at = forms.SplitDateTimeField(required=False)
    end_at = forms.SplitDateTimeField(required=False)
    smooth = forms.BooleanField(required=False)
    # The job that the form edits, for its place in the interval.
    job = forms.IntegerField(required=False, min_value=0, max_value=2**63 - 1)

    def schedule_and_job(self) -> tuple[Schedule, int | None]:
        """Return the fields of the chosen kind as a schedule, unchecked, and the job's key."""
        facts = dict(self.cleaned_data)
        kind, job = facts.pop("schedule"), facts.pop("job")
        for name, kinds in KINDS_OF.items():
            if kind not in kinds.split():
                del facts[name]
        return Schedule(kind=kind, **facts), job


def preview(request: HttpRequest, *, jobs: QuerySet[Any]) -> HttpResponse:
    """Return a part of a page: the schedule in words and its next times, or its error."""
    form = ScheduleForm(request.GET)
    if form.is_valid():
        timetable = _timetable(*form.schedule_and_job(), jobs)
    else:
        [(field, [problem, *_others]), *_rest] = form.errors.items()
        timetable = Timetable(words="", problem=problem_of(ScheduleError(field, str(problem))))
    return render(request, "admin/jobs/timetable.html", {"timetable": timetable})


def _timetable(given: Schedule, key: int | None, jobs: QuerySet[Any]) -> Timetable:
    try:
        schedule = checked(given)
    except ScheduleError as error:
        return Timetable(words="", problem=problem_of(error))
    if schedule.kind != ScheduleKind.INTERVAL:
        return timetable_of(schedule, after=timezone.now(), count=PREVIEWED)
    minutes = schedule.interval_minutes
    job: Job | None = jobs.filter(pk=key, interval_minutes=minutes).first() if key else None
    if job is None or job.phase is None or job.shard is None:
        found = timetable_of(schedule, after=timezone.now(), count=0)
        remark = _("Its minute and second are chosen when it is saved, and then stay.")
        return replace(found, remark=remark)
    placed = replace(schedule, phase=job.phase, shard=job.shard)
    return timetable_of(placed, after=timezone.now(), count=PREVIEWED)
