"""Find runs for a caller: one by its id, many by filters."""

from __future__ import annotations

from typing import Annotated, Any, Final
from uuid import UUID

from ninja import Query, Schema
from pydantic import Field, field_validator

from jobs.actions.texts import Moment, Name, Slug, TaskName, Text
from jobs.api.kit.pages import ID_LIMIT
from jobs.api.kit.problems import first_of
from jobs.core.inputs import LABELS_LIMIT
from jobs.core.states import State
from jobs.models import Run
from jobs.models.access import Access
from jobs.models.run import RunQuerySet
from jobs.runs.reads.listing import RunFilter

WITH: Final = ("owner", "job", "target")
_PLAIN: Final = {"owner", "job", "task", "target", "submission", "error", "after", "before"}
"""Fields of a query that are those of the filter."""


class RunQuery(Schema):
    """The filters of a list of runs; a run must match all of them."""

    state: list[State] = Field([], max_length=len(State), description="One of these states.")
    owner: Slug | None = None
    job: Name | None = Field(None, description="The key of a job.")
    task: TaskName | None = None
    target: Name | None = Field(None, description="The whole name of a target.")
    submission: int | None = Field(None, ge=1, le=ID_LIMIT)
    label: list[Text] = Field(
        [], max_length=LABELS_LIMIT, description="`name:value`; repeat it for several."
    )
    error: Name | None = Field(None, description="The class of the last error, in full.")
    after: Moment | None = Field(None, description="Submitted, or due, at this time or later.")
    before: Moment | None = Field(None, description="Submitted, or due, before this time.")

    @field_validator("label")
    @classmethod
    def _has_a_name_and_a_value(cls, labels: list[str]) -> list[str]:
        if not all(name and colon for name, colon, _ in (label.partition(":") for label in labels)):
            raise ValueError("each is name:value")
        return labels

    @property
    def wanted(self) -> RunFilter:
        """The filter of the list."""
        labels = dict(label.partition(":")[::2] for label in self.label)
        given = self.model_dump(include=_PLAIN)
        return RunFilter(states=self.state, labels=labels, **given)


Filters = Annotated[RunQuery, Query()]


def visible_runs(access: Access) -> RunQuerySet:
    """Return the runs that a caller sees."""
    return access.narrowed(Run.objects.all())


def find_run(access: Access, run_id: UUID) -> Run:
    """Return a run that the caller sees, with its owner, job and target; raise Problem if none."""
    rows: Any = visible_runs(access).select_related(*WITH)
    found: Run = first_of(rows.filter(id=run_id))
    return found
