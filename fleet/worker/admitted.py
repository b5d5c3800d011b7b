"""An admitted run on its worker: what the gate keeps of it."""

from __future__ import annotations

import math
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from celery.worker.request import Request

from fleet.contract import HEADER, Admission, AdmissionRequest, Kind, Report, is_admitted
from fleet.router import route_of
from fleet.transport.envelope import SERIAL_LIMIT

ID_LIMIT: Final = 2**63
ATTEMPT_LIMIT: Final = 2**31
TO_BEGIN_SECONDS: Final = 0.1
"""Between the last check and the task's first line, the process may wait for a processor."""


@dataclass(slots=True)
class AdmittedRun:
    """One admitted run on this worker."""

    admission: Admission
    request: Request
    admitted_at: float
    in_pool: bool = False
    is_starting: bool = False
    """It waits for the record of its start, and goes into the pool then."""
    is_recorded: bool = False
    """Its start is recorded: its row says that it runs, so it cannot be handed back."""
    started_at: float | None = None
    cancelled: bool = False
    settled: bool = False
    lease_ends: float = math.inf
    """When the lease of this worker ended when the run went to the pool: by then another may start
    it."""
    options: dict[str, Any] = field(default_factory=dict)
    job: Any = None
    """The job that the pool has made of it."""

    @property
    def is_late(self) -> bool:
        """Whether it is too late for a start."""
        at, closes_at = time.monotonic(), self.closes_at
        return at > self.begins_by or (closes_at is not None and at > closes_at)

    @property
    def begins_by(self) -> float:
        """The start deadline, by this machine's monotonic clock."""
        return min(self.admitted_at + self.admission.start_within, self.lease_ends)

    @property
    def closes_at(self) -> float | None:
        """When its calendars close, by this machine's monotonic clock."""
        within = self.admission.closes_within
        return None if within is None else self.admitted_at + within - TO_BEGIN_SECONDS

    def report(self, kind: Kind, *, cause: str = "") -> Report:
        """Return a report of this kind, as of now."""
        return Report(
            self.admission.run_id, self.admission.token, kind, time.monotonic(), cause=cause
        )


def admission_request_of(headers: Mapping[str, Any]) -> AdmissionRequest | None:
    """Return a hint's request; None if it names no run or task, or impossible numbers."""
    try:
        run_id = str(uuid.UUID(headers.get("id")))
    except (ValueError, AttributeError, TypeError):
        return None
    task, facts = headers["task"], headers[HEADER]
    if not is_task_name(task):
        return None
    token = facts.get("token")
    if facts.get("job") is None:
        is_token = type(token) is int and 1 <= token < SERIAL_LIMIT
        return AdmissionRequest(run_id, task, token=token if is_token else 0)
    job = facts["job"]
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
    """Say whether PostgreSQL accepts this text: one hint must not fail a batch of them."""
    if not isinstance(task, str) or "\0" in task:
        return False
    # JSON may have lone surrogates, which are no UTF-8.
    return task.isascii() or task.encode("utf-8", "replace").decode() == task


def facts_of(args: Any) -> Mapping[str, Any] | None:
    """Return the facts that an admission put into a request; None for a plain task."""
    request = args[2] if len(args) > 2 else None
    facts = request.get(HEADER) if isinstance(request, Mapping) else None
    return facts if is_admitted(facts) else None
