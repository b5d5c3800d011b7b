"""The run of the current task."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from celery import current_task

from fleet import HEADER, is_admitted


@dataclass(frozen=True, slots=True)
class RunContext:
    """The durable run that the current task is an attempt of. `attempt` counts from 1.

    After an operator's retry, `attempt` and Celery's `request.retries` start again; the numbers of
    stored attempts continue. `token` identifies an attempt in both.
    """

    run_id: UUID
    token: int
    attempt: int
    max_attempts: int
    owner: str
    job_id: int | None
    submission_id: int | None
    due_at: datetime | None
    labels: Mapping[str, str]


def current_run() -> RunContext | None:
    """Return the run of the current task; None outside a task and in a plain one."""
    facts = getattr(current_task.request, HEADER, None) if current_task else None
    if facts is None or not is_admitted(facts):
        return None
    return RunContext(
        run_id=UUID(facts["run"]),
        token=facts["token"],
        attempt=facts["attempt"],
        max_attempts=facts["policy"]["max_attempts"],
        owner=facts["owner"],
        job_id=facts["job"],
        submission_id=facts["submission"],
        due_at=datetime.fromisoformat(facts["due_at"]) if facts["due_at"] else None,
        labels=facts["labels"],
    )
