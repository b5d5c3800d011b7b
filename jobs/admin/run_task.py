"""The verbs on runs of a task that was renamed or removed: move to another task, and fail."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django import forms
from django.db.models import QuerySet
from django.utils.translation import gettext_lazy as _

from jobs.admin.verbs import Act, ReasonForm, Verb, always
from jobs.catalog import NAME_LIMIT, resolve
from jobs.errors import UnknownTask
from jobs.states import WAITING
from jobs.unknown_tasks import fail_runs, move_runs

PERMISSION = "jobs.move_run"


class TaskForm(ReasonForm):
    """The task that they are to run, and why."""

    to = forms.CharField(label=_("Task"), max_length=NAME_LIMIT)
    field_order = ("to", "reason")

    def clean_to(self) -> str:
        try:
            return resolve(self.cleaned_data["to"]).name
        except UnknownTask as error:
            raise forms.ValidationError(str(error)) from error


def _waiting(runs: QuerySet[Any]) -> QuerySet[Any]:
    return runs.filter(state__in=sorted(WAITING))


def _move(keys: Sequence[UUID], act: Act) -> int:
    actor = None if act.is_bulk else act.actor
    return move_runs(keys, to=act.data["to"], actor=actor, reason=act.reason).runs


def _fail(keys: Sequence[UUID], act: Act) -> int:
    return len(fail_runs(keys, actor=None if act.is_bulk else act.actor, reason=act.reason))


MOVE = Verb(
    name="move",
    label=_("Move to another task"),
    permission=PERMISSION,
    applies=_waiting,
    act=_move,
    done=_("moved to another task"),
    refused=always(_("This run does not wait, or its arguments do not fit that task.")),
    warning=_("Runs whose arguments do not fit that task stay as they are."),
    form=TaskForm,
    mark=lambda run: f"{run.state} {run.task}",
    audits_bulk=True,
)
FAIL = Verb(
    name="fail",
    label=_("Fail unstarted"),
    permission=PERMISSION,
    applies=_waiting,
    act=_fail,
    done=_("failed"),
    refused=lambda run: _("This run is %s and cannot be failed.") % run.state,
    warning=_("They end without a start, as runs of a task that no worker knows."),
    mark=lambda run: run.state,
    audits_bulk=True,
)
