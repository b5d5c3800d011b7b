"""The filters of workers."""

from __future__ import annotations

from typing import Annotated, Final

from django.db.models import Q
from django.utils.translation import gettext_lazy
from django.utils.translation import gettext_noop as _
from pydantic import Field

from jobs.actions.conditions import Rows
from jobs.actions.declared import Shown
from jobs.actions.filters.declared import By, Choices, Filter
from jobs.actions.texts import Text
from jobs.models import Worker
from jobs.models.access import Access
from jobs.runs.reads.workers import WorkerState, with_state

STATES: Final = {
    "alive": gettext_lazy("alive"),
    "draining": gettext_lazy("draining"),
    "idle": gettext_lazy("takes no runs"),
    "lost": gettext_lazy("lost"),
    "stopped": gettext_lazy("stopped"),
}


def _in_state(workers: Rows, state: WorkerState, _access: Access) -> Rows:
    conditions = {
        "alive": Q(draining_since=None, pk__in=Worker.objects.alive().values("pk")),
        "draining": Q(is_beating=True, draining_since__isnull=False),
        "idle": Q(draining_since=None, pk__in=Worker.objects.idle().values("pk")),
        "lost": Q(is_beating=False, stopped_at=None),
        "stopped": Q(stopped_at__isnull=False),
    }
    return with_state(workers).filter(conditions[state])


class WorkerFilter(Filter):
    """The filters of a list of workers."""

    queue: Annotated[
        Annotated[Text, Field(max_length=100)] | None,
        Shown(_("Takes from queue")),
        By(lambda workers, queue, _: workers.filter(queues__contains=[queue])),
        Field(description="Only workers that take runs from this queue."),
    ] = None
    state: Annotated[
        WorkerState | None, Shown(_("State")), Choices(tuple(STATES.items())), By(_in_state)
    ] = None
