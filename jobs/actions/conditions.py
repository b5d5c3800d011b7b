"""Conditions of actions: which rows an action applies to, or is offered for.

A condition narrows many rows by a query. One on states also judges a row that was read, so that a
page asks PostgreSQL nothing for most of its buttons.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

from django.db.models import Exists, OuterRef, Q

from jobs.core.states import State
from jobs.models import Backfill, Run

Rows = Any
"""A QuerySet; each model has methods of its own."""


def every(rows: Rows) -> Rows:
    """Return the rows: the action applies to each."""
    return rows


@dataclass(frozen=True, slots=True)
class OfStates:
    """A condition that narrows rows when it is called."""

    narrow: Callable[[Rows], Rows]
    judge: Callable[[Any], bool | None]
    """Say whether a row fulfils it, as it was read; None: only a query can tell."""

    def __call__(self, rows: Rows) -> Rows:
        return self.narrow(rows)


def in_states(states: Collection[State], *, also: Callable[[Rows], Rows] = every) -> OfStates:
    """Return the condition of runs that are in one of these states; `also` narrows them further."""

    def judge(run: Any) -> bool | None:
        return _with_rest(run.state in states, also)

    return OfStates(lambda runs: also(runs.filter(state__in=sorted(states))), judge)


def with_runs_in(
    states: Collection[State], *, also: Callable[[Rows], Rows] = every, or_growing: bool = False
) -> OfStates:
    """Return the condition of submissions with such runs. A page counts them as `page_progress`.

    With `or_growing` also submissions whose backfill still makes runs.
    """

    def narrow(submissions: Rows) -> Rows:
        runs = Run.objects.filter(submission=OuterRef("pk"), state__in=sorted(states))
        growing = Backfill.objects.filter(submission=OuterRef("pk"), done_at=None)
        found = Q(Exists(also(runs)))
        return submissions.filter(found | Q(Exists(growing)) if or_growing else found)

    def judge(submission: Any) -> bool | None:
        progress = submission.page_progress
        if progress is None:
            return None
        has_state = any(progress[state] for state in states)
        return (or_growing and progress.is_growing) or _with_rest(has_state, also)

    return OfStates(narrow, judge)


def _with_rest(has_state: bool, also: Callable[[Rows], Rows]) -> bool | None:
    return None if has_state and also is not every else has_state
