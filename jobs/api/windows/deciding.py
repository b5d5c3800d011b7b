"""Decisions on windows: approve, reject, revoke; all occurrences, or one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.http import HttpRequest

from jobs.api.kit.callers import caller, needs, refuse_other_scope
from jobs.api.kit.etags import IF_MATCH_OPTIONAL
from jobs.api.windows.reading import find_window, refuse_stale_window
from jobs.api.windows.router import router
from jobs.api.windows.schemas import ApprovalToGive, DecisionDetails, DecisionToMake
from jobs.calendars import approvals
from jobs.calendars.changes import changing
from jobs.core import barrier
from jobs.models import Scope, WindowDecision

DECIDES = needs(Scope.APPROVE, approvals.PERMISSION)


@router.post(
    "/{int:window_id}/approve",
    auth=DECIDES,
    response={201: DecisionDetails},
    operation_id="approve_window",
    openapi_extra=IF_MATCH_OPTIONAL,
)
def approve_window(request: HttpRequest, window_id: int, body: ApprovalToGive) -> DecisionDetails:
    """Approve a window as it is now.

    Under four eyes, neither the caller that requested it may do so, nor a token of the same maker.
    With `If-Match`, a window that has changed since you read it is not approved.
    """
    return _decide(request, window_id, approvals.approve, body)


@router.post(
    "/{int:window_id}/reject",
    auth=DECIDES,
    response={201: DecisionDetails},
    operation_id="reject_window",
    openapi_extra=IF_MATCH_OPTIONAL,
)
def reject_window(request: HttpRequest, window_id: int, body: DecisionToMake) -> DecisionDetails:
    """Reject a window."""
    return _decide(request, window_id, approvals.reject, body)


@router.post(
    "/{int:window_id}/revoke",
    auth=DECIDES,
    response={201: DecisionDetails},
    operation_id="revoke_window",
    openapi_extra=IF_MATCH_OPTIONAL,
)
def revoke_window(request: HttpRequest, window_id: int, body: DecisionToMake) -> DecisionDetails:
    """Revoke an approval. Active runs end as the calendar says for a close."""
    return _decide(request, window_id, approvals.revoke, body)


def _decide(
    request: HttpRequest, window_id: int, decide: Callable[..., WindowDecision], body: Any
) -> DecisionDetails:
    window = find_window(request, window_id)
    refuse_other_scope(request, Scope.APPROVE, window.calendar.owner_id)
    with barrier.lifted(), changing(window.calendar):
        refuse_stale_window(request, window)
        made = decide(window, actor=caller(request).actor, **body.model_dump())
        made.refresh_from_db()
        return DecisionDetails.of(made)
