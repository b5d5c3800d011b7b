"""Actions on runs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Annotated, Any, Final

from django.db.models import Q
from django.utils.translation import gettext_noop as _
from pydantic import BeforeValidator, Field

from jobs.actions.conditions import Rows, in_states
from jobs.actions.declared import (
    HIDDEN,
    Action,
    Call,
    NeededReason,
    Noun,
    Reason,
    Shown,
    sentence,
)
from jobs.actions.texts import Moment, Name, TaskName, Text
from jobs.catalog.redaction import hidden_arguments
from jobs.catalog.registry import is_offered, nearest_offered
from jobs.core.errors import OptionError, StateConflict
from jobs.core.inputs import LABELS_LIMIT
from jobs.core.phrases import Phrase, phrase
from jobs.core.states import ACTIVE, REOPENABLE, WAITING, State
from jobs.models import Run, Scope, WindowPolicy
from jobs.models.access import Access
from jobs.runs.bulk import CANCELLABLE, Moved, OwnedKey, cancel_found, in_chunks, retry_found
from jobs.runs.changing import FACTS, change_run
from jobs.runs.looks import ask_where
from jobs.runs.manual_retry import retry_run
from jobs.runs.override import held_by, override_windows
from jobs.runs.preparation import queue_names
from jobs.runs.reads.choices import word_of
from jobs.runs.reads.story import readable
from jobs.runs.renamed_tasks import fail_runs, move_runs

IS_CANCELLED: Final = frozenset({State.CANCELLED, State.CANCELLING})


class Retry(Reason):
    """A retry, with the same arguments or with others."""

    arguments: Annotated[
        dict[str, Any] | None,
        Shown(
            _("Arguments"),
            _("All arguments by name, as a JSON object. Unchanged: the run keeps its arguments."),
        ),
    ] = Field(None, description="All arguments of the new attempts, by name; null: those it has.")


def _cancel(run: Any, call: Call) -> None:
    run.cancel(**call.audited)
    if run.state not in IS_CANCELLED:
        raise StateConflict(str(run.id), run.state, "cancelled")


def _state_now(run: Any, _value: Any) -> Phrase:
    return phrase(_("This run is %(state)s now."), state=str(word_of(run.state)))


class RunChange(Reason):
    """The facts of a waiting run to be changed; those that are absent stay."""

    priority: Annotated[
        int, Field(ge=0, le=9, strict=True), Shown(_("Priority"), _("0 to 9, higher first."))
    ] = Field(5)
    queue: Annotated[Text, Field(max_length=100), Shown(_("Queue"))] = ""
    due_at: Annotated[Moment | None, Shown(_("Due at"), _("Empty: now."))] = Field(
        None, description="Null: now."
    )
    deadline_at: Annotated[Moment | None, Shown(_("Start before"), _("Empty: no deadline."))] = (
        Field(None, description="The last moment of the first start; null: no deadline.")
    )
    labels: Annotated[
        dict[Name, Name],
        BeforeValidator(lambda given: given or {}),
        Shown(_("Labels"), _("A JSON object of names and texts.")),
    ] = Field({}, max_length=LABELS_LIMIT)
    arguments: Annotated[
        dict[str, Any],
        Shown(
            _("Arguments"),
            _("All arguments by name, as a JSON object. Unchanged: the run keeps its arguments."),
        ),
    ] = Field({}, description="All of them, by name.")


def _facts(run: Any, access: Access) -> Mapping[str, Any]:
    facts = {name: getattr(run, name) for name in FACTS}
    labels = json.dumps(run.labels, indent=2, ensure_ascii=False) if run.labels else ""
    return {**facts, "labels": labels, **_arguments(run, access)}


def _queues(run: Any) -> list[tuple[str, str]]:
    """Return the queues that a submit may name, and that of the run."""
    return [(name, name) for name in sorted({run.queue, *queue_names()})]


def _arguments(run: Any, access: Access) -> Mapping[str, Any]:
    """Return the arguments as JSON; HIDDEN for a person who may not see them.

    Empty if some were given by position.
    """
    if not access.sees_arguments(run.owner_id):
        return {"arguments": HIDDEN}
    return {"arguments": readable(lambda: _by_name(run), otherwise="")}


def _by_name(run: Any) -> str:
    args, kwargs = hidden_arguments(run.task, *run.arguments)
    return "" if args else json.dumps(kwargs, indent=2, ensure_ascii=False)


def _override(run: Any, call: Call) -> tuple[int, list[str]]:
    count = override_windows([run.id], **call.audited)
    return count, held_by([run.id])


def _overridden(_run: Any, value: tuple[int, list[str]]) -> Phrase:
    _count, holding = value
    if not holding:
        return phrase(_("This run may start outside its windows."))
    text = _(
        "This run may start outside its windows. Only superusers override shared calendars, which"
        " still hold it: %(calendars)s."
    )
    return phrase(text, calendars=", ".join(holding))


def _override_all(found: Sequence[OwnedKey], call: Call) -> Moved:
    return in_chunks(found, lambda ids: override_windows(ids, **call.audited))


class TaskToMove(Reason):
    """Another task: one that was renamed has waiting runs that no worker knows."""

    to: Annotated[TaskName, Shown(_("Task"), _("The full name of a task that is offered."))]


def _offered_task(name: str) -> str:
    # As in every form, only offered tasks are started.
    if not is_offered(name):
        near = nearest_offered(name)
        hint = f"; did you mean {near!r}?" if near else ""
        raise OptionError("to", f"{name!r} is no task that is offered{hint}")
    return name


def _move(run: Any, call: Call) -> str:
    moved = move_runs([run.id], to=_offered_task(call.body.to), **call.audited)
    for problem in moved.problems:
        raise OptionError("to", f"does not take the arguments of this run: {problem}")
    run.refresh_from_db()
    return str(run.task)


def _moved(_run: Any, task: str) -> Phrase:
    return phrase(_("It is a run of %(task)s now."), task=task)


def _move_all(found: Sequence[OwnedKey], call: Call) -> Moved:
    to = _offered_task(call.body.to)
    return in_chunks(found, lambda ids: move_runs(ids, to=to, **call.audited).runs)


def _fail(run: Any, call: Call) -> None:
    fail_runs([run.id], **call.audited)
    run.refresh_from_db()


def _fail_all(found: Sequence[OwnedKey], call: Call) -> Moved:
    return in_chunks(found, lambda ids: len(fail_runs(ids, **call.audited)))


def that_obey_windows(runs: Rows) -> Rows:
    """Narrow waiting runs to those that a calendar may delay, or that require one."""
    waiting = runs.exclude(window_policy=WindowPolicy.OVERRIDDEN)
    # A superuser may override the shared calendars that still hold a run.
    waiting = waiting.exclude(~Q(state=State.HELD), window_policy=WindowPolicy.SHARED)
    required = Q(window_policy=WindowPolicy.REQUIRED)
    return waiting.filter(required | Q(owner__calendar_version__gt=0))


_WAITING: Final = in_states(WAITING)
_NOT_WAITING: Final = _("This run does not wait: a worker has started it, or it has ended.")

_action = partial(Action, scope=Scope.OPERATE)

CHANGE: Final = _action(
    name="change",
    label=_("Change"),
    explains=_(
        "For a run that waits. Its target and its lock stay. With another priority or queue it goes"
        " behind those of its owner that wait there."
    ),
    permission="jobs.change_run",
    body=RunChange,
    initial=_facts,
    choices={"queue": _queues},
    applies=_WAITING,
    refused=_NOT_WAITING,
    act=lambda run, call: change_run(run, **call.given, **call.audited),
    done=sentence(_("It is changed.")),
    method="PATCH",
)
LOOK: Final = _action(
    name="look",
    label=_("Where is it?"),
    explains=_(
        "Its worker is asked for the stack, the memory and the CPU time of the process that runs"
        " it, and answers with its next heartbeat. The task goes on."
    ),
    permission="jobs.view_arguments",
    applies=in_states(ACTIVE),
    refused=_("No worker has this run."),
    act=lambda run, call: ask_where(run, **call.audited),
    done=sentence(_("Its worker is asked: the answer will be on this page.")),
)
RETRY: Final = _action(
    name="retry",
    label=_("Retry"),
    explains=_("It is queued again with a fresh set of attempts."),
    permission="jobs.retry_run",
    body=Retry,
    initial=_arguments,
    applies=in_states(REOPENABLE),
    refused=_("Only runs that failed, expired or were cancelled can be retried."),
    act=lambda run, call: retry_run(run, arguments=call.body.arguments, **call.audited),
    act_on_all=lambda found, call: retry_found(found, **call.audited),
    body_of_all=Reason,
    done=sentence(_("It is queued again with a fresh set of attempts.")),
)

RUNS: Final = Noun(
    name="run",
    rows=lambda: Run.objects.select_related("owner", "job", "target", "submission"),
    key="id",
    key_kind="uuid",
    view="jobs.view_run",
    actions=(
        CHANGE,
        LOOK,
        RETRY,
        _action(
            name="cancel",
            label=_("Cancel"),
            explains=_(
                "A waiting run never starts. One that a worker has started is asked to stop."
            ),
            permission="jobs.cancel_run",
            applies=in_states(CANCELLABLE | IS_CANCELLED),
            offered=in_states(CANCELLABLE),
            refused=_("Only runs that have not ended and were not asked to stop can be cancelled."),
            act=_cancel,
            act_on_all=lambda found, call: cancel_found(found, **call.audited),
            done=_state_now,
            is_destructive=True,
        ),
        _action(
            name="override",
            label=_("Override windows"),
            explains=_(
                "It starts despite its owner's calendars and freezes. Shared calendars still hold"
                " it unless a superuser overrides. Limits of owners and locks still apply."
            ),
            permission="jobs.override_window",
            body=NeededReason,
            applies=_WAITING,
            offered=in_states(WAITING, also=that_obey_windows),
            refused=_("This run does not wait, or may start outside its windows already."),
            is_repeatable=True,
            act=_override,
            act_on_all=_override_all,
            done=_overridden,
            locks=False,
        ),
        _action(
            name="move",
            label=_("Move to another task"),
            explains=_(
                "For a task that was renamed. A run whose arguments do not fit that task stays as"
                " it is."
            ),
            permission="jobs.move_run",
            body=TaskToMove,
            applies=_WAITING,
            refused=_NOT_WAITING,
            act=_move,
            act_on_all=_move_all,
            done=_moved,
        ),
        _action(
            name="fail",
            label=_("Fail unstarted"),
            explains=_("For a task that was removed. It ends as failed, and no worker starts it."),
            permission="jobs.move_run",
            applies=_WAITING,
            refused=_NOT_WAITING,
            act=_fail,
            act_on_all=_fail_all,
            done=_state_now,
            is_destructive=True,
        ),
    ),
)
