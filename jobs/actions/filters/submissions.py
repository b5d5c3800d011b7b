"""The filters of submissions."""

from __future__ import annotations

from typing import Annotated

from django.utils.translation import gettext_noop as _
from pydantic import Field

from jobs.actions.declared import Shown
from jobs.actions.filters.declared import AGES, Age, By, Filter, OwnedBy, by_age
from jobs.actions.texts import Moment, Name, TaskName


class SubmissionFilter(Filter):
    """The filters of a list of submissions; a submission must match all of them."""

    owner: OwnedBy = None
    label: Annotated[
        Name | None, Shown(_("Label")), By("label"), Field(description="The whole label.")
    ] = None
    task: Annotated[TaskName | None, Shown(_("Task")), By("task")] = None
    age: Annotated[
        Age | None,
        Shown(_("Submitted")),
        AGES,
        by_age(lambda rows, moment, _: rows.filter(created_at__gte=moment)),
    ] = None
    after: Annotated[
        Moment | None, By("created_at__gte"), Field(description="Submitted at this time or later.")
    ] = None
    before: Annotated[
        Moment | None, By("created_at__lt"), Field(description="Submitted before this time.")
    ] = None
