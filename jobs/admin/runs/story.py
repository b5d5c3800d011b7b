"""The story of one run: its facts, its history, why it waits, and every attempt."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from django.utils import timezone
from django.utils.html import format_html
from django.utils.translation import gettext as _

from jobs.admin.kit import html
from jobs.admin.runs.override import overridden_in_words
from jobs.core.language import in_language
from jobs.core.states import ACTIVE, ENDED, State
from jobs.models import Attempt, AttemptOutcome, Run, Worker
from jobs.models.access import Access
from jobs.runs.reads.causes import cause_in_words
from jobs.runs.reads.errors import HIDDEN, message_of, shown, texts_of
from jobs.runs.reads.story import (
    arguments_text,
    cut,
    flower_url,
    readable,
    result_text,
    steps_of,
    tried,
)

KINDS: Final = {
    AttemptOutcome.SUCCEEDED: "succeeded",
    AttemptOutcome.RETRYING: "retrying",
    AttemptOutcome.CANCELLED: "cancelled",
    AttemptOutcome.GIVEN_BACK: "queued",
    AttemptOutcome.SNOOZED: "retrying",
}


@dataclass(frozen=True, slots=True)
class Step:
    """One state of a run, as the page shows it."""

    state: str
    at: str
    stayed: str
    cause: str


@dataclass(frozen=True, slots=True)
class AttemptLine:
    """One attempt, as the page shows it."""

    number: int
    token: int
    outcome: str
    worker: str
    began: str
    ended: str
    took: str
    error_type: str = ""
    error_message: str = ""
    traceback: str = ""


@dataclass(frozen=True, slots=True)
class Story:
    run: Run
    state: str
    why: str
    facts: list[tuple[str, Any]]
    """Each a label and its value."""
    steps: list[Step]
    attempts: list[AttemptLine]
    hidden_attempts: int
    error_message: str
    arguments: str | None
    result: str | None
    hidden: str
    """The sentence in place of arguments and result; empty: they are shown."""


def story_of(run: Run, access: Access) -> Story:
    """Return a run's story. A part that cannot be read says so and hides no other part."""
    sees_arguments = access.sees_arguments(run.owner_id)
    attempts, hidden, workers = tried(run)
    return Story(
        run=run,
        state=html.badge(run.state),
        why=in_language(readable(run.why_waiting)),
        facts=_facts(run),
        steps=readable(lambda: _steps(run), otherwise=[]),
        attempts=[_attempt_line(attempt, run, workers, access) for attempt in attempts]
        + _current_attempt(run, workers),
        hidden_attempts=hidden,
        error_message=in_language(shown(message_of(run, access))),
        arguments=readable(lambda: arguments_text(run)) if sees_arguments else None,
        result=readable(lambda: result_text(run)) if sees_arguments else None,
        hidden="" if sees_arguments else in_language(HIDDEN),
    )


def _facts(run: Run) -> list[tuple[str, Any]]:
    pairs: list[tuple[str, Callable[[], Any]]] = [
        (_("Owner"), lambda: html.link(run.owner)),
        (_("Task"), lambda: html.code(run.task)),
        (_("Job"), lambda: html.link(run.job)),
        (_("Submission"), lambda: html.link(run.submission)),
        (_("Target"), lambda: html.link(run.target)),
        (_("Worker"), lambda: html.link(run.worker)),
        (_("Attempts"), lambda: _attempts_in_words(run)),
        (_("Submitted"), lambda: html.exact(run.created_at)),
        (_("Due"), lambda: html.exact(run.due_at)),
        (_("Start before"), lambda: html.exact(run.deadline_at)),
        (_("Windows"), lambda: overridden_in_words(run)),
        (_("May start until"), lambda: html.exact(_last_start(run))),
        (_("Started"), lambda: html.exact(run.started_at)),
        (_("Ended"), lambda: html.exact(run.ended_at)),
        (_("Queue"), lambda: html.code(run.queue)),
        (_("Priority"), lambda: run.priority),
        (_("Lock"), lambda: html.code(run.lock_key.partition(":")[2])),
        (_("Windows"), lambda: run.get_window_policy_display() if run.window_policy else ""),
        (_("Labels"), lambda: html.pairs(run.labels)),
        (_("Policy"), lambda: html.pairs(run.policy)),
        (_("Flower"), lambda: _flower_link(run)),
    ]
    facts = [(label, readable(value)) for label, value in pairs]
    return [(label, value) for label, value in facts if value not in ("", None, html.NOTHING)]


def _attempts_in_words(run: Run) -> str:
    text = _("%d of at most %d") % (run.attempt_number, run.last_attempt_number)
    if run.earlier_attempts:
        text += _(", %d of them before the last retry") % run.earlier_attempts
    return text


def _last_start(run: Run) -> datetime | None:
    """Return the latest start in the present opening; None unless the run is queued."""
    return run.not_after if run.state == State.QUEUED else None


def _flower_link(run: Run) -> str:
    url = flower_url(run)
    return format_html('<a href="{0}" rel="noreferrer">{0}</a>', url) if url else ""


def _steps(run: Run) -> list[Step]:
    steps = steps_of(run)
    befores = [None, *(step.at for step in steps)]
    # The last state lasts until now, unless the run has ended.
    now = None if run.state in ENDED else timezone.now()
    return [
        Step(
            state=html.badge(step.state),
            at=html.clock(step.at, after=before),
            stayed=html.span(until - step.at) if until else "",
            cause=in_language(cause_in_words(step.cause)),
        )
        for step, before in zip(steps, befores, strict=False)
        for until in (step.until or now,)
    ]


def _attempt_line(
    attempt: Attempt, run: Run, workers: dict[Any, Worker], access: Access
) -> AttemptLine:
    message, traceback = texts_of(attempt, run, access)
    took = attempt.ended_at - attempt.started_at if attempt.started_at else None
    label = attempt.get_outcome_display()
    return AttemptLine(
        number=attempt.number,
        token=attempt.token,
        outcome=html.badge(label, KINDS.get(AttemptOutcome(attempt.outcome), "failed")),
        worker=html.link(workers.get(attempt.worker_id)),
        began=html.exact(attempt.started_at or attempt.admitted_at),
        ended=html.exact(attempt.ended_at),
        took=html.span(took),
        error_type=attempt.error_type,
        error_message=cut(in_language(shown(message))),
        traceback=cut(traceback or ""),
    )


def _current_attempt(run: Run, workers: dict[Any, Worker]) -> list[AttemptLine]:
    """Return the attempt in progress, which has no row yet."""
    if run.state not in ACTIVE:
        return []
    since = run.started_at if run.state != State.ADMITTED else None
    return [
        AttemptLine(
            number=run.attempt_number,
            token=run.token,
            outcome=html.badge(run.state),
            worker=html.link(workers.get(run.worker_id)),
            began=html.exact(since or run.admitted_at),
            ended=html.NOTHING,
            took=html.span(datetime.now(UTC) - since if since else None),
        )
    ]
