"""What the window in a form means: asked for while somebody types it. Changes nothing."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.translation import gettext as _

from jobs.admin.calendars.window_form import WindowForm
from jobs.calendars.hours import entry_of
from jobs.calendars.reads.occurrence_list import Timetable, times_of
from jobs.models import Window


def preview(request: HttpRequest) -> HttpResponse:
    """Return a piece of a page: the window in words and its next occurrences, or what is wrong."""
    form = WindowForm(request.GET)
    # Which calendar it is of does not change what it means.
    del form.fields["calendar"]
    return render(request, "admin/jobs/window/times.html", {"times": times_in(form)})


def times_in(form: WindowForm) -> Timetable:
    """Return what was typed, or what is wrong with it first; without approvals."""
    for field, problems in form.errors.items():
        if form.entry is None:
            label = form.fields[field].label if field in form.fields else _("window")
            return Timetable(words="", problem=f"{label}: {next(iter(problems))}")
    if form.entry is None:
        return Timetable(words="")
    return times_of(form.entry, after=timezone.now())


def times_now(window: Window) -> Timetable:
    """Return a stored window; one that cannot be read says so."""
    try:
        return times_of(entry_of(window), after=timezone.now())
    # Rows may be written by raw SQL.
    except Exception as error:
        return Timetable(words="", problem=_("cannot be read (%s)") % error)
