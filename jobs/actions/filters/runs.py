"""The filters of runs, and of failed runs.

A run is found by indexes also among millions. A filter without an index is applied to the newest
runs that the other filters find.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal
from uuid import UUID

from django.db.models import Q
from django.utils.translation import gettext_lazy
from django.utils.translation import gettext_noop as _
from pydantic import Field, field_validator

from jobs.actions.conditions import Rows
from jobs.actions.declared import Shown
from jobs.actions.filters.declared import (
    AGES,
    BEFORE,
    FROM,
    ID_LIMIT,
    Age,
    By,
    Choices,
    Filter,
    OwnedBy,
    by_age,
    keys_of,
)
from jobs.actions.texts import Moment, Name, TaskName, Text
from jobs.core.ids import first_id_of
from jobs.core.inputs import LABELS_LIMIT
from jobs.core.states import ACTIVE, ENDED, State
from jobs.models import Job, Target
from jobs.models.access import Access
from jobs.runs.reads.choices import WORDS
from jobs.runs.reads.listing import PageOfIds, newest

NO_ERROR: Final = "(none)"
"""In place of the class of an error: runs that failed without one, by hand."""

_GROUPS: Final = {
    "open": (frozenset(State) - ENDED, gettext_lazy("not ended")),
    "active": (ACTIVE, gettext_lazy("with a worker")),
    "problem": (
        frozenset({State.FAILED, State.EXPIRED, State.RETRYING}),
        gettext_lazy("with trouble"),
    ),
    # Queued runs that a worker returned because no live worker knew their task.
    "unknown": (frozenset({State.QUEUED}), gettext_lazy("returned by a worker: unknown task")),
}
_STATES: Final = (
    *((name, label) for name, (_states, label) in _GROUPS.items()),
    *((state.value, word) for state, word in WORDS.items()),
)
if TYPE_CHECKING:
    StateOrGroup = str
else:
    StateOrGroup = Literal[tuple(name for name, _label in _STATES)]


def _states_of(names: list[Any]) -> set[State]:
    return {
        state
        for name in names
        for state in (_GROUPS[name][0] if name in _GROUPS else {State(name)})
    }


def _in_states(runs: Rows, names: list[Any], _access: Access) -> Rows:
    found = Q(state__in=sorted(_states_of([name for name in names if name != "unknown"])))
    if "unknown" in names:
        # The second condition is that of the partial index: PostgreSQL cannot derive it.
        found |= Q(state=State.QUEUED, blocked_by="task") & ~Q(blocked_by="")
    return runs.filter(found)


def _of_job(runs: Rows, key: str, access: Access) -> Rows:
    return runs.filter(job_id__in=keys_of(access.narrowed(Job.objects.filter(key=key))))


def _of_target(runs: Rows, name: str, access: Access) -> Rows:
    return runs.filter(target_id__in=keys_of(access.narrowed(Target.objects.filter(name=name))))


def _labelled(runs: Rows, labels: list[str], _access: Access) -> Rows:
    return runs.labelled(**dict(label.partition(":")[::2] for label in labels))


def _first_id(moment: datetime) -> UUID:
    # No id is of a time before 1970.
    return first_id_of(max(moment, datetime(1970, 1, 1, tzinfo=UTC)))


def _since(runs: Rows, moment: datetime, _access: Access) -> Rows:
    return runs.filter(id__gte=_first_id(moment))


def _until(runs: Rows, moment: datetime, _access: Access) -> Rows:
    return runs.filter(id__lt=_first_id(moment))


After = Annotated[
    Moment | None, FROM, By(_since), Field(description="Submitted, or due, at this time or later.")
]
Before = Annotated[
    Moment | None, BEFORE, By(_until), Field(description="Submitted, or due, before this time.")
]


class RunFilter(Filter):
    """The filters of a list of runs; a run must match all of them."""

    owner: OwnedBy = None
    state: Annotated[
        list[StateOrGroup],
        Shown(_("State")),
        Choices(_STATES),
        By(_in_states),
        Field(max_length=len(_STATES), description="One of these states, or groups of states."),
    ] = []
    task: Annotated[
        TaskName | None, Shown(_("Task"), "reports.build"), By("task", is_scanned=True)
    ] = None
    job: Annotated[
        Name | None, Shown(_("Job")), By(_of_job), Field(description="The key of a job.")
    ] = None
    target: Annotated[
        Name | None,
        Shown(_("Target")),
        By(_of_target),
        Field(description="The whole name of a target."),
    ] = None
    submission: Annotated[
        int | None, Shown(_("Submission")), By("submission_id"), Field(ge=1, le=ID_LIMIT)
    ] = None
    label: Annotated[
        list[Text],
        Shown(_("Label"), "site:berlin"),
        By(_labelled),
        Field(max_length=LABELS_LIMIT, description="`name:value`; repeat it for several."),
    ] = []
    error: Annotated[
        Name | None,
        Shown(_("Error class"), "builtins.ValueError"),
        By("error_type", is_scanned=True, empty=NO_ERROR),
        Field(description=f"The class of the last error, in full; `{NO_ERROR}`: without one."),
    ] = None
    age: Annotated[Age | None, Shown(_("Submitted")), AGES, by_age(_since)] = None
    after: After = None
    before: Before = None

    @field_validator("label")
    @classmethod
    def _has_a_name_and_a_value(cls, labels: list[str]) -> list[str]:
        if not all(name and colon for name, colon, _ in (label.partition(":") for label in labels)):
            raise ValueError("each is name:value")
        return labels

    @property
    def scanned(self) -> dict[str, Any]:
        """The columns that no index answers, with their values."""
        return {str(by.how): by.value_of(value) for by, value in self.given() if by.is_scanned}

    def newest(self, runs: Rows, *, access: Access, after: UUID | None, limit: int) -> PageOfIds:
        """Return the ids of the next page of these runs, the newest first."""
        for by, value in self.given():
            if not by.is_scanned:
                runs = by.narrow(runs, value, access)
        return newest(
            runs,
            states=_states_of(self.state),
            is_sorted=self.submission is not None,
            scanned=self.scanned,
            after=after,
            limit=limit,
        )


BY_ERROR: Final = By("error_type", empty=NO_ERROR)


class FailureFilter(Filter):
    """The filters of failed runs."""

    owner: OwnedBy = None
    error: Annotated[
        Name | None,
        Shown(_("Error, in full")),
        BY_ERROR,
        Field(description=f"The class of the error, in full; `{NO_ERROR}`: without one."),
    ] = None
    task: Annotated[TaskName | None, Shown(_("Task")), By("task")] = None
    after: After = None
    before: Before = None

    def narrow(self, rows: Rows, *, access: Access) -> Rows:
        return super().narrow(rows.filter(state=State.FAILED), access=access)
