"""A month of a calendar, or of all calendars that apply to an owner, a job or a target."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from itertools import islice
from typing import Any, Final
from zoneinfo import ZoneInfo

from django.db.models import Count, Q, QuerySet
from django.db.models.functions import TruncDate
from django.utils import timezone
from django.utils.translation import gettext as _

from jobs.calendars import gate
from jobs.calendars.hours import entry_of, has_too_many, read_hours
from jobs.calendars.reads import month_layout
from jobs.calendars.reads.month_layout import Day, Mark, Piece
from jobs.calendars.reads.occurrence_list import Counted, overlapping
from jobs.calendars.reads.window_state import WindowState, state_of
from jobs.calendars.visibility import visible_attachments, visible_rows
from jobs.core.counting import within
from jobs.core.states import State
from jobs.core.zones import zone_names
from jobs.models import Calendar, Job, Owner, Run, Target, TargetGroup, Window
from jobs.windows import MOST_OPENINGS, Effect, Span, open_spans

PLANNED: Final = (State.SCHEDULED, State.HELD, State.RETRYING)
COUNT_MILLISECONDS: Final = 2_000
MOST_OF_VIEW: Final = 25_000
"""Occurrences of all windows in a view, more than a single calendar can have."""


@dataclass(frozen=True, slots=True)
class MarkText:
    word: str
    look: str
    more: str
    reason: str
    calendar: str
    window: int
    """The key of the window or freeze."""


@dataclass(frozen=True, slots=True)
class Content:
    """The content of a view: its calendars, the runs that are counted, and the zone."""

    subject: Calendar | Owner | Job | Target
    calendars: Sequence[Calendar]
    runs: Q
    zone: str


@dataclass(frozen=True, slots=True)
class View:
    """A month, ready to be shown; `problem` says which windows are missing and why."""

    subject: Any
    calendars: Sequence[Calendar]
    weeks: list[list[Day]]
    month: date
    before: date
    after: date
    zone: str
    problem: str
    planned_is_known: bool


def content_of(subject: Calendar | Owner | Job | Target, user: Any, *, zone: str = "") -> Content:
    """Return what a month of this shows a user; only runs of the user's owners are counted."""
    if isinstance(subject, Calendar):
        keys: Collection[int] = [subject.pk]
        owner, runs = subject.owner, runs_of(subject, user)
    else:
        keys, owner, runs = _applying(subject)
    calendars = visible_rows(Calendar.objects.filter(pk__in=keys), user).prefetch_related(
        "windows__decisions", "windows__requested_by", "windows__requested_by_token"
    )
    return Content(subject=subject, calendars=list(calendars), runs=runs, zone=_zone(zone, owner))


def _applying(subject: Owner | Job | Target) -> tuple[Collection[int], Owner, Q]:
    """Return the calendars that apply, the owner, and the condition of the runs."""
    owner = subject if isinstance(subject, Owner) else subject.owner
    job_id, target_id = None, None
    if isinstance(subject, Job):
        job_id, target_id = subject.pk, subject.target_id
    elif isinstance(subject, Target):
        target_id = subject.pk
    found = gate.calendars_of(owner.pk, job_id=job_id, target_ids=[target_id])
    return found[target_id], owner, Q(**{str(subject._meta.model_name): subject})


def view_of(content: Content, *, month: str, now: datetime) -> View:
    """Return the month that an address asks for."""
    today = now.astimezone(ZoneInfo(content.zone)).date()
    month_start = month_layout.month_of(month, today=today)
    whole = month_layout.range_of(month_start, content.zone)
    problems: list[str] = []
    every = (mark for calendar in content.calendars for mark in _marks(calendar, whole, problems))
    marks = list(islice(every, MOST_OF_VIEW + 1))
    if len(marks) > MOST_OF_VIEW:
        problems.append(_("More than %s occurrences: the last are left out.") % f"{MOST_OF_VIEW:,}")
    by_day = planned(content, whole)
    weeks = month_layout.month(
        month_start,
        zone=content.zone,
        marks=marks,
        open_spans=opened(content, whole, problems),
        now=now,
        planned=by_day or {},
    )
    return View(
        subject=content.subject,
        calendars=content.calendars,
        weeks=weeks,
        month=month_start,
        before=month_layout.previous_month(month_start),
        after=month_layout.next_month(month_start),
        zone=content.zone,
        problem="; ".join(dict.fromkeys(problems)),
        planned_is_known=by_day is not None,
    )


@dataclass(frozen=True, slots=True)
class DayView:
    """All of one day: each occurrence by itself; `planned` is None if counting takes too long."""

    day: date
    zone: str
    pieces: list[Piece]
    open_spans: Sequence[Span]
    planned: int | None
    problem: str


def view_of_day(content: Content, day: date) -> DayView:
    """Return one day, by the clock of the content's zone."""
    whole = month_layout.whole_day(day, content.zone)
    problems: list[str] = []
    marks = [mark for calendar in content.calendars for mark in _marks(calendar, whole, problems)]
    marks.sort(key=lambda mark: (mark.span.start, mark.span.end))
    by_day = planned(content, whole)
    return DayView(
        day=day,
        zone=content.zone,
        pieces=month_layout.each_piece_of(marks, whole, content.zone),
        open_spans=opened(content, whole, problems),
        planned=None if by_day is None else by_day.get(day, 0),
        problem="; ".join(dict.fromkeys(problems)),
    )


def opened(content: Content, whole: Span, problems: list[str]) -> Sequence[Span]:
    """Return the spans in which all its calendars are open."""
    try:
        return open_spans(map(read_hours, content.calendars), start=whole.start, end=whole.end)
    # Raw SQL may have broken rows; `occurrences_of` names them.
    except Exception as error:
        problems.append(str(error))
        return ()


def occurrences_of(
    calendar: Calendar, whole: Span, problems: list[str]
) -> Iterator[tuple[Window, Counted]]:
    """Yield each occurrence of a calendar's windows and freezes that overlaps a span."""
    windows = sorted(calendar.windows.all(), key=lambda one: one.pk)
    if has_too_many(windows):
        problems.append(
            _("%(calendar)s is closed: it makes more than %(limit)s openings in 62 days")
            % {"calendar": calendar, "limit": f"{MOST_OPENINGS:,}"}
        )
        return
    for window in windows:
        try:
            for one in overlapping(entry_of(window), start=whole.start, end=whole.end):
                yield window, one
        # Raw SQL may have written an invalid rule or zone.
        except Exception as error:
            problems.append(f"{window}: {error}")


def _marks(calendar: Calendar, whole: Span, problems: list[str]) -> Iterator[Mark]:
    now = timezone.now()
    texts: dict[tuple[int, bool], MarkText] = {}
    for window, one in occurrences_of(calendar, whole, problems):
        key = window.pk, one.counts
        if key not in texts:
            effect = Effect(window.effect)
            state = state_of(window, now=now)
            texts[key] = _mark_text(window, state, counts=one.counts, is_of=effect)
        yield Mark(one.span, texts[key])


def _mark_text(window: Window, state: WindowState, *, counts: bool, is_of: Effect) -> MarkText:
    is_freeze = is_of is Effect.FREEZE
    return MarkText(
        word=_("freeze") if is_freeze else _("window") if counts else _("not approved"),
        look="freeze" if is_freeze else "window" if counts else "asked",
        more="" if is_freeze or counts else state.word,
        reason=window.reason,
        calendar=window.calendar.name,
        window=window.pk,
    )


def planned(content: Content, whole: Span) -> dict[date, int] | None:
    """Return how many runs are planned for each day; None when counting takes too long."""
    runs = (
        Run.objects.filter(
            content.runs, state__in=PLANNED, next_at__gte=whole.start, next_at__lt=whole.end
        )
        .order_by()
        .annotate(day=TruncDate("next_at", tzinfo=ZoneInfo(content.zone)))
        .values_list("day")
        .annotate(count=Count("*"))
    )
    return within(COUNT_MILLISECONDS, lambda: dict(runs))


def runs_of(calendar: Calendar, user: Any) -> Q:
    """Return the condition of the runs of a user's owners that a calendar applies to."""
    to: QuerySet[Any] = visible_attachments(calendar.attachments.all(), user).order_by()
    targets = TargetGroup.targets.through.objects.filter(
        targetgroup__in=to.filter(group__isnull=False).values("group")
    )
    return (
        Q(owner__in=to.filter(owner__isnull=False).values("owner"))
        | Q(job__in=to.filter(job__isnull=False).values("job"))
        | Q(target__in=to.filter(target__isnull=False).values("target"))
        | Q(target__in=targets.values("target"))
    )


def _zone(asked: str, owner: Owner | None) -> str:
    for zone in (asked, owner.zone if owner else "", timezone.get_current_timezone_name()):
        if zone in zone_names():
            return zone
    return "UTC"
