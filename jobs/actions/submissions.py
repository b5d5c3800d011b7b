"""Actions on all runs of a submission."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from django.utils.translation import gettext_noop as _

from jobs.actions.conditions import with_runs_in
from jobs.actions.declared import Action, Call, NeededReason, Noun
from jobs.actions.rollouts import ROLLOUT_ACTIONS
from jobs.actions.runs import that_obey_windows
from jobs.core.phrases import Phrase, phrase
from jobs.core.states import WAITING, State
from jobs.models import Scope, Submission
from jobs.models.verbs import Cancelled
from jobs.runs.bulk import CANCELLABLE, reopen_failed
from jobs.runs.override import held_by_of, override_submission


def _count(submission: Any, states: frozenset[State]) -> int:
    progress = submission.progress
    return sum(progress[state] for state in states)


def cancelled(_row: Any, moved: Cancelled) -> Phrase:
    """Return what to say after a cancel of the runs of a submission."""
    text = _("%(ended)s of its runs cancelled, %(stopping)s asked to stop.")
    return phrase(text, ended=moved.cancelled, stopping=moved.stopping)


def _retry(submission: Any, call: Call) -> tuple[int, int]:
    moved, left, _refusal = reopen_failed(submission, **call.audited)
    return moved, left


def _retried(_submission: Any, value: tuple[int, int]) -> Phrase:
    moved, left = value
    if not left:
        return phrase(_("%(moved)s of its runs queued again."), moved=moved)
    text = _("%(moved)s of its runs queued again, %(left)s are left: retry them once more.")
    return phrase(text, moved=moved, left=left)


def _override(submission: Any, call: Call) -> tuple[int, list[str]]:
    count = override_submission(submission, **call.audited)
    return count, held_by_of(submission)


def _overridden(_submission: Any, value: tuple[int, list[str]]) -> Phrase:
    count, holding = value
    if not holding:
        return phrase(_("%(count)s of its runs may start outside their windows."), count=count)
    text = _(
        "%(count)s of its runs may start outside their windows. Only superusers override shared"
        " calendars, which still hold some: %(calendars)s."
    )
    return phrase(text, count=count, calendars=", ".join(holding))


_action = partial(Action, scope=Scope.OPERATE, is_repeatable=True, locks=False)

SUBMISSIONS: Final = Noun(
    name="submission",
    rows=lambda: Submission.objects.select_related("owner", "rollout"),
    view="jobs.view_submission",
    actions=(
        _action(
            name="cancel",
            label=_("Cancel"),
            explains=_(
                "Waiting runs never start. Runs that a worker has started are asked to stop."
            ),
            permission="jobs.cancel_submission",
            applies=with_runs_in(CANCELLABLE, or_growing=True),
            refused=_("Every run of this submission has ended, or was asked to stop."),
            counts=lambda submission: _count(submission, CANCELLABLE),
            act=lambda submission, call: submission.cancel(**call.audited),
            done=cancelled,
            is_destructive=True,
        ),
        _action(
            name="retry",
            label=_("Retry the failed runs"),
            explains=_("Each failed run is queued again with a fresh set of attempts."),
            permission="jobs.retry_run",
            applies=with_runs_in({State.FAILED}),
            refused=_("No run of this submission has failed."),
            counts=lambda submission: _count(submission, frozenset({State.FAILED})),
            act=_retry,
            done=_retried,
        ),
        _action(
            name="override",
            label=_("Override windows"),
            explains=_(
                "Its waiting runs start despite their owner's calendars and freezes. Shared"
                " calendars still hold them unless a superuser overrides. Limits of owners and"
                " locks still apply."
            ),
            permission="jobs.override_window",
            body=NeededReason,
            applies=with_runs_in(WAITING),
            offered=with_runs_in(WAITING, also=that_obey_windows),
            refused=_("No run of this submission waits for a window."),
            counts=lambda submission: _count(submission, frozenset(WAITING)),
            act=_override,
            done=_overridden,
        ),
        *ROLLOUT_ACTIONS,
    ),
)
