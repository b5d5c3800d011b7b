"""An admitted run on its worker: what the gate keeps of it, and how it changes its request."""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from celery.worker.request import Request

from fleet.contract import HEADER, Admission, AdmissionRequest, Kind, Report, is_admitted
from fleet.router import route_of
from fleet.transport.envelope import SERIAL_LIMIT, read_json

ID_LIMIT: Final = 2**63
ATTEMPT_LIMIT: Final = 2**31
TO_BEGIN_SECONDS: Final = 0.1
"""From the last look to the task's first line a process may have to wait for a processor."""


@dataclass(slots=True)
class AdmittedRun:
    """One admitted run on this worker."""

    admission: Admission
    request: Request
    admitted_at: float
    in_pool: bool = False
    is_starting: bool = False
    """It goes into the pool as soon as its start is recorded."""
    is_recorded: bool = False
    """Its start is: its row takes it for running, and it cannot be handed back any more."""
    started_at: float | None = None
    cancelled: bool = False
    settled: bool = False
    options: dict[str, Any] = field(default_factory=dict)
    job: Any = None
    """The pool's own handle of it."""

    @property
    def is_late(self) -> bool:
        """Whether the start deadline has passed."""
        at = time.monotonic()
        is_closed = self.closes_at is not None and at > self.closes_at
        return is_closed or at > self.begins_by

    @property
    def begins_by(self) -> float:
        """When it may be another worker's, by the monotonic clock of all of this machine."""
        return self.admitted_at + self.admission.start_within

    @property
    def closes_at(self) -> float | None:
        """When it is too late for its calendars, by the monotonic clock of all of this machine."""
        within = self.admission.closes_within
        return None if within is None else self.admitted_at + within - TO_BEGIN_SECONDS

    def report(self, kind: Kind, *, cause: str = "") -> Report:
        """Return what is to be recorded of it, as of now."""
        return Report(
            self.admission.run_id, self.admission.token, kind, time.monotonic(), cause=cause
        )


def admission_request_of(headers: Mapping[str, Any]) -> AdmissionRequest | None:
    """Return what a hint asks for; None when it names no run, no task, or what can be no job's."""
    try:
        run_id = str(uuid.UUID(headers.get("id")))
    except (ValueError, AttributeError, TypeError):
        return None
    task, facts = headers["task"], headers[HEADER]
    if not is_task_name(task):
        return None
    if facts.get("job") is None:
        return AdmissionRequest(run_id, task)
    job, token = facts["job"], facts.get("token")
    retries: Any = headers.get("retries")
    submission = facts.get("submission")
    limits = (
        *((job, 1, ID_LIMIT), (1 if submission is None else submission, 1, ID_LIMIT)),
        *((token, 1, SERIAL_LIMIT), (retries, 0, ATTEMPT_LIMIT)),
    )
    if not all(type(number) is int and least <= number < most for number, least, most in limits):
        return None
    owner = route_of(headers).owner
    return AdmissionRequest(run_id, task, job, owner, submission, attempt=retries + 1, token=token)


def is_task_name(task: object) -> bool:
    """Say whether PostgreSQL can be asked of this: one hint must not fail a batch of them."""
    if not isinstance(task, str) or "\0" in task:
        return False
    # JSON has halves of characters, which are no UTF-8.
    return task.encode("utf-8", "replace").decode() == task


def apply_admission(request: Request, admission: Admission) -> None:
    """Put the row's payload, limits and headers into a request that came as a bare hint."""
    args, kwargs, embed = read_json(admission.body.decode())
    request._body = admission.body
    request._content_type, request._content_encoding = "application/json", "utf-8"
    request._args, request._kwargs = args, kwargs
    # Celery keeps the decoded message here and reads errbacks and chords from it.
    request.__dict__["_payload"] = (args, kwargs, embed)
    request.time_limits = (admission.time_limit, admission.soft_time_limit)
    request.request_dict.update(admission.headers, args=args, kwargs=kwargs)
    request.request_dict[HEADER] = admission.facts()
    # The row decides whether it runs, and not what Celery has stored of an attempt before.
    request.delivery_info["redelivered"] = False
    request._ignore_result = request.request_dict.get("ignore_result")


def facts_of(args: Any) -> Mapping[str, Any] | None:
    """Return what admission put into a request on its way to the pool; None for a plain task."""
    request = args[2] if len(args) > 2 else None
    facts = request.get(HEADER) if isinstance(request, Mapping) else None
    return facts if is_admitted(facts) else None
