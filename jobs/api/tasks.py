"""Tasks that may be submitted, with the JSON schema of their arguments."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from ninja import Router, Schema
from pydantic import Field

from jobs.api.kit.callers import needs
from jobs.api.kit.problems import not_found
from jobs.catalog.arguments import ArgumentSchema
from jobs.catalog.registry import OfferedTask, offered
from jobs.models import Scope

router = Router(tags=["tasks"])
READS = needs(Scope.READ, "jobs.view_run")


class Task(Schema):
    """A task on offer."""

    name: str
    title: str
    description: str
    policy: dict[str, Any] = Field(description="The defaults of its runs, such as `max_attempts`.")
    arguments: dict[str, Any] = Field(description="The JSON schema of the arguments.")


class Tasks(Schema):
    """Every task on offer, by title."""

    items: list[Task]


@router.get("", auth=READS, response=Tasks, operation_id="list_tasks")
def list_tasks(request: HttpRequest) -> Tasks:
    """Return every task that may be submitted here."""
    return Tasks(items=[_task(item) for item in offered()])


@router.get("/{task}", auth=READS, response=Task, operation_id="get_task")
def get_task(request: HttpRequest, task: str) -> Task:
    """Return one task, by its name."""
    for item in offered():
        if item.name == task:
            return _task(item)
    raise not_found()


def _task(item: OfferedTask) -> Task:
    return Task(
        name=item.name,
        title=str(item.offer.title),
        description=str(item.offer.description),
        policy=dict(item.offer.policy),
        arguments=ArgumentSchema.of(item.task).json_schema(),
    )
