"""The preview of the window in a form, requested while a person types. Changes nothing."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.translation import gettext as _

from jobs.admin.calendars.window_form import WindowForm
from jobs.calendars.reads.occurrence_list import Timetable, times_of


def preview(request: HttpRequest) -> HttpResponse:
    """Return a part of a page: the window in words and its next occurrences, or its error."""
    form = WindowForm(request.GET)
    # The preview is the same for each calendar.
    del form.fields["calendar"]
    context = {"timetable": times_in(form), "is_window": True}
    return render(request, "admin/jobs/timetable.html", context)


def times_in(form: WindowForm) -> Timetable:
    """Return the timetable of the window in a form, without approvals, or its first error."""
    errors = form.errors
    if form.entry is not None:
        return times_of(form.entry, after=timezone.now())
    for field, problems in errors.items():
        label = form.fields[field].label if field in form.fields else _("window")
        return Timetable(words="", problem=f"{label}: {problems[0]}")
    return Timetable(words="")
