"""The timeline of one run: a bar with a part for each state, and the rows of its table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from jobs.core.language import in_language
from jobs.core.states import ENDED, State
from jobs.pages.kit import times
from jobs.pages.kit.pieces import SIGNS
from jobs.runs.reads.causes import cause_in_words
from jobs.runs.reads.choices import word_of
from jobs.runs.reads.story import Step

LEAST_PART: Final = 0.06
"""The part of the bar that a short state has at least: its sign fits."""
NARROW_PART: Final = 15
"""Percent of the bar from which on a part has its name and time; the table below has them all."""
WIDE_PART: Final = 55
"""Percent from which on it has them also on a phone."""
MOST_PARTS: Final = 24
"""Parts of the bar at most: the newest. The table has all."""
EXECUTING: Final = frozenset({State.RUNNING, State.CANCELLING})
OUTCOMES: Final = frozenset({State.RETRYING, State.FAILED, State.SUCCEEDED, State.CANCELLED})
"""States after an attempt that say how it ended: the bar shows the attempt by their sign."""


@dataclass(frozen=True, slots=True)
class Line:
    """One state, as the table shows it."""

    state: State
    at: datetime
    before: datetime | None
    """When the state before it began."""
    stayed: str
    cause: str

    @property
    def clock(self) -> Any:
        """The time of day, with the date where it changes."""
        return times.clock(self.at, after=self.before)


@dataclass(frozen=True, slots=True)
class Timeline:
    """The bar, its title, and the rows of the table."""

    title: str
    bar: SafeString
    lines: list[Line]


def timeline_of(steps: Sequence[Step], *, now: datetime) -> Timeline:
    """Return the timeline of a run from its states. Pure."""
    befores = [None, *(step.at for step in steps)]
    lines = [
        Line(step.state, step.at, before, _stayed(step, now), _cause(step))
        for step, before in zip(steps, befores, strict=False)
    ]
    return Timeline(_title(steps, now), _bar(steps, now), lines)


def coarse(length: timedelta) -> str:
    """Return a length that still grows, to the minute: it changes once a minute only."""
    if length < timedelta(minutes=1):
        return _("less than 1 min")
    minutes = int(length.total_seconds() // 60)
    return _("%d min") % minutes if minutes < 60 else times.span(timedelta(minutes=minutes))


def _cause(step: Step) -> str:
    cause: str = in_language(cause_in_words(step.cause))
    return cause


def _stayed(step: Step, now: datetime) -> str:
    if step.until is not None:
        return times.span(step.until - step.at)
    return "" if step.state in ENDED else _("%s so far") % coarse(now - step.at)


def _title(steps: Sequence[Step], now: datetime) -> str:
    if not steps:
        return _("Timeline")
    run = sum(
        (step.until - step.at for step in steps if step.state in EXECUTING and step.until),
        timedelta(0),
    )
    facts = {"whole": times.span(steps[-1].at - steps[0].at), "run": times.span(run)}
    if steps[-1].state in ENDED:
        return _("Timeline · %(whole)s from submit to end, %(run)s running") % facts
    return _("Timeline · %s so far") % coarse(now - steps[0].at)


def _bar(steps: Sequence[Step], now: datetime) -> SafeString:
    """Return a bar as wide as its card; short states are drawn wider than their time."""
    shown = [step for step in steps if step.until is not None or step.state not in ENDED]
    shown = shown[-MOST_PARTS:]
    lengths = [max(0.0, ((step.until or now) - step.at).total_seconds()) for step in shown]
    whole = sum(lengths) or 1.0
    weights = [max(length / whole, LEAST_PART) for length in lengths]
    total = sum(weights) or 1.0
    parts, left = [], 0.0
    for step, weight in zip(shown, weights, strict=True):
        sign, tone = SIGNS[_ended_as(step, steps)]
        text = f"{word_of(step.state)} {_stayed(step, now)}".strip()
        width = 100 * weight / total
        label = text if width >= NARROW_PART else ""
        kind = "word wide" if width >= WIDE_PART else "word"
        hint = f"{text}: {_cause(step)}"
        parts.append((f"{left:.2f}", f"{width:.2f}", tone, hint, sign, kind, label))
        left += width
    part = (
        '<svg x="{}%" width="{}%" height="32" class="{}"><title>{}</title>'
        '<rect class="part" width="100%" height="32"></rect>'
        '<text x="8" y="21">{}<tspan class="{}" dx="4">{}</tspan></text></svg>'
    )
    words = ", ".join(f"{word_of(step.state)} {_stayed(step, now)}" for step in shown)
    return format_html(
        '<svg class="timeline" width="100%" height="32" role="img" aria-label="{}">{}</svg>',
        words or _("no state"),
        format_html_join("", part, parts),
    )


def _ended_as(step: Step, steps: Sequence[Step]) -> State:
    """Return the state whose sign shows this step: of an attempt, how it ended."""
    if step.state not in EXECUTING or step.until is None:
        return step.state
    following = steps[steps.index(step) + 1].state
    if following == State.RETRYING:
        return State.FAILED
    return following if following in OUTCOMES else step.state
