"""One run: from its submit to its end, with what to do about it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from django.http import HttpResponse
from django.utils import timezone
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from jobs.actions import find
from jobs.actions.runs import RUNS
from jobs.core import barrier
from jobs.core.language import in_language
from jobs.core.states import ACTIVE, ENDED, State
from jobs.models import Attempt, AttemptOutcome, Run, Worker
from jobs.models.access import Access
from jobs.pages.kit.actions import buttons
from jobs.pages.kit.pieces import SIGNS
from jobs.pages.kit.polls import PART
from jobs.pages.kit.visit import Visit, page
from jobs.pages.runs.log import card_of
from jobs.pages.runs.timeline import Timeline, timeline_of
from jobs.runs.looks import Answer, answers_of, unanswered
from jobs.runs.reads.choices import word_of
from jobs.runs.reads.errors import HIDDEN, shown, texts_of
from jobs.runs.reads.flower import flower_address
from jobs.runs.reads.story import (
    EndedAttempts,
    arguments_text,
    cut,
    ended_attempts,
    readable,
    result_text,
    steps_of,
)

SHOWN_AS: Final = {
    AttemptOutcome.SUCCEEDED: State.SUCCEEDED,
    AttemptOutcome.CANCELLED: State.CANCELLED,
    AttemptOutcome.GIVEN_BACK: State.QUEUED,
    AttemptOutcome.SNOOZED: State.RETRYING,
}
"""The states whose signs outcomes have; other outcomes have that of a failure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptLine:
    """One attempt, as the page shows it."""

    number: int
    word: Any
    sign: str
    tone: str
    worker: Worker | None
    began_at: datetime | None
    ended_at: datetime | None = None
    took: timedelta | None = None
    error_type: str = ""
    error_message: str = ""
    traceback: str = ""


@page("runs", permission="jobs.view_run")
def run(visit: Visit, run_id: UUID) -> HttpResponse:
    """Show one run."""
    found: Run = find(RUNS, run_id, by=visit.access)
    is_ended = found.state in ENDED
    sees_arguments = visit.access.sees_arguments(found.owner_id)
    # Workers have no owner. Why a run waits counts other owners' runs, and names no other owner.
    with barrier.lifted():
        done = ended_attempts(found)
        why = in_language(readable(found.why_waiting))
        silent = readable(lambda: in_language(unanswered(found))) if sees_arguments else ""
    return visit.show(
        "jobs/pages/runs/one.html",
        live="jobs/pages/runs/one_live.html",
        run=found,
        is_ended=is_ended,
        why=why,
        timeline=readable(
            lambda: timeline_of(steps_of(found), now=timezone.now()),
            otherwise=Timeline(_("The history of this run cannot be read."), SafeString(), []),
        ),
        attempts=[_line_of(attempt, found, done.workers, visit.access) for attempt in done.attempts]
        + _present(found, done),
        hidden_attempts=done.hidden,
        sees_workers=visit.access.permits("jobs.view_worker"),
        sees_arguments=sees_arguments,
        hidden=in_language(HIDDEN),
        arguments=readable(lambda: arguments_text(found)) if sees_arguments else None,
        result=readable(lambda: result_text(found)) if sees_arguments else None,
        answers=readable(lambda: _answers(found), otherwise=[]) if sees_arguments else [],
        unanswered=silent,
        flower=flower_address("task", str(found.id)),
        admin_url=visit.admin_address("run_change", found.pk),
        buttons=buttons(visit, RUNS, found),
        # Its new lines are asked for by themselves.
        log=None if PART in visit.request.headers else card_of(visit, found),
    )


def _answers(found: Run) -> list[tuple[Answer, str]]:
    """Return the answers to "Where is it?", newest first, each with its problem in words."""
    return [(one, in_language(one.problem)) for one in reversed(answers_of(found))]


def _line_of(
    attempt: Attempt, found: Run, workers: dict[UUID, Worker], access: Access
) -> AttemptLine:
    message, traceback = texts_of(attempt, found, access)
    sign, tone = SIGNS[SHOWN_AS.get(AttemptOutcome(attempt.outcome), State.FAILED)]
    return AttemptLine(
        number=attempt.number,
        word=attempt.get_outcome_display(),
        sign=sign,
        tone=tone,
        worker=workers.get(attempt.worker_id) if attempt.worker_id else None,
        began_at=attempt.started_at or attempt.admitted_at,
        ended_at=attempt.ended_at,
        took=attempt.ended_at - attempt.started_at if attempt.started_at else None,
        error_type=attempt.error_type,
        error_message=cut(in_language(shown(message))),
        traceback=cut(traceback or ""),
    )


def _present(found: Run, done: EndedAttempts) -> list[AttemptLine]:
    """Return the attempt in progress, which has no row yet."""
    if found.state not in ACTIVE:
        return []
    sign, tone = SIGNS[found.state]
    worker = done.workers.get(found.worker_id) if found.worker_id else None
    return [
        AttemptLine(
            number=found.attempt_number,
            word=word_of(found.state),
            sign=sign,
            tone=tone,
            worker=worker,
            began_at=found.started_at if found.state != State.ADMITTED else found.admitted_at,
        )
    ]
