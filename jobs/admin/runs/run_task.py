"""The verbs for runs of a renamed or removed task: move to another task, and fail."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any
from uuid import UUID

from django import forms
from django.db.models import QuerySet
from django.utils.translation import gettext_lazy as _

from jobs.admin.kit.verbs import Act, ReasonForm, Verb, always
from jobs.catalog.registry import NAME_LIMIT, offered
from jobs.core.states import WAITING
from jobs.runs.reads.choices import word_of
from jobs.runs.renamed_tasks import OWN, fail_runs, move_runs

# Each chunk writes its own audit entries, with a count for each task.
PERMISSION = "jobs.move_run"


class TaskForm(ReasonForm):
    """The new task of the runs, and a reason."""

    to = forms.CharField(label=_("Task"), max_length=NAME_LIMIT)
    field_order = ("to", "reason")

    def clean_to(self) -> str:
        # As in every form, a person starts only offered tasks.
        name: str = self.cleaned_data["to"]
        names = [item.name for item in offered() if not item.name.startswith(OWN)]
        if name not in names:
            near = next(iter(get_close_matches(name, names, n=1)), None)
            hint = _("; did you mean %r?") % near if near else ""
            raise forms.ValidationError(
                _("%(name)r is no task that is offered%(hint)s") % {"name": name, "hint": hint}
            )
        return name


def _waiting(runs: QuerySet[Any]) -> QuerySet[Any]:
    return runs.filter(state__in=sorted(WAITING))


def _move(keys: Sequence[UUID], act: Act) -> int:
    return move_runs(keys, to=act.data["to"], actor=act.actor, reason=act.reason).runs


def _fail(keys: Sequence[UUID], act: Act) -> int:
    return len(fail_runs(keys, actor=act.actor, reason=act.reason))


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
)
FAIL = Verb(
    name="fail",
    label=_("Fail unstarted"),
    permission=PERMISSION,
    applies=_waiting,
    act=_fail,
    done=_("failed"),
    refused=lambda run: _("This run is %s and cannot be failed.") % word_of(run.state),
    warning=_("The selected runs end as failed. No worker starts them again."),
    mark=lambda run: run.state,
)
