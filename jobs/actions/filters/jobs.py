"""The filters of jobs, and of their missed spans."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from django.db.models.functions import Now
from django.utils.translation import gettext_lazy
from django.utils.translation import gettext_noop as _
from pydantic import Field, PrivateAttr

from jobs.actions.conditions import Rows
from jobs.actions.declared import Shown
from jobs.actions.filters.declared import (
    YES_OR_NO,
    By,
    Choices,
    Filter,
    OwnedBy,
    Pairs,
    keys_of,
)
from jobs.actions.texts import Name, TaskName
from jobs.catalog.registry import offered
from jobs.core import barrier
from jobs.core.sql import now
from jobs.models import MissReason, Owner, ScheduleKind, Target
from jobs.models.access import Access
from jobs.recurring.health import by_health
from jobs.runs.reads.search import search_beginnings

OFFERED: Final = 50
Health = Literal["late", "failing", "paused", "broken"]
_HEALTHS: Final = (
    ("late", gettext_lazy("late")),
    ("failing", gettext_lazy("failing")),
    ("paused", gettext_lazy("paused")),
    ("broken", gettext_lazy("broken")),
)


def _offered_tasks() -> Pairs:
    return [(item.name, item.offer.title) for item in offered()][:OFFERED]


def _begins_with(jobs: Rows, text: str, _access: Access) -> Rows:
    # Behind the barrier PostgreSQL would not use the indexes of beginnings. These rows are narrowed
    # already, and the page's rows are read behind it.
    with barrier.lifted():
        return search_beginnings(jobs, text, exact="key", any_case="name")


def _of_target(jobs: Rows, name: str, access: Access) -> Rows:
    return jobs.filter(target_id__in=keys_of(access.narrowed(Target.objects.filter(name=name))))


def _paused(jobs: Rows, value: bool, _access: Access) -> Rows:
    paused = {"paused_until__gt": Now()}
    return jobs.filter(**paused) if value else jobs.exclude(**paused)


class JobFilter(Filter):
    """The filters of a list of jobs; a job must match all of them."""

    owner: OwnedBy = None
    key: Annotated[Name | None, By("key"), Field(description="The whole key.")] = None
    search: Annotated[
        Name | None,
        Shown(_("Key or name begins with")),
        By(_begins_with),
        Field(description="The beginning of the key or the name; finds at most 500 of each."),
    ] = None
    task: Annotated[
        TaskName | None, Shown(_("Task")), Choices(_offered_tasks, is_open=True), By("task")
    ] = None
    schedule: Annotated[
        ScheduleKind | None,
        Shown(_("Schedule")),
        Choices(ScheduleKind.choices),
        By("schedule"),
    ] = None
    target: Annotated[
        Name | None, By(_of_target), Field(description="The whole name of a target.")
    ] = None
    enabled: Annotated[bool | None, Shown(_("Enabled")), YES_OR_NO, By("enabled")] = None
    paused: Annotated[
        bool | None, By(_paused), Field(description="True: only jobs that are paused now.")
    ] = None
    health: Annotated[
        Health | None,
        Shown(_("Health")),
        Choices(_HEALTHS),
        Field(description="The search is limited in time and in number: there may be more."),
    ] = None
    _is_complete: bool = PrivateAttr(True)

    @property
    def is_complete(self) -> bool:
        """False: there may be more jobs of this health than `narrow` has found."""
        return self._is_complete

    def narrow(self, rows: Rows, *, access: Access) -> Rows:
        rows = super().narrow(rows, access=access)
        if self.health is None:
            return rows
        owners: Any = None if access.sees_all else access.owner_ids()
        if self.owner is not None:
            owners = keys_of(access.narrowed(Owner.objects.filter(slug=self.owner), path="pk"))
        with barrier.lifted():
            rows, self._is_complete = by_health(rows, self.health, owners, now=now())
        return rows


class MissedFilter(Filter):
    """The filters of a list of missed spans."""

    reason: Annotated[
        MissReason | None, Shown(_("Reason")), Choices(MissReason.choices), By("reason")
    ] = None
    owner: OwnedBy = None
