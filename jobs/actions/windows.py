"""Actions on windows and freezes. Decisions are on all occurrences of a window, or on one.

The verbs of `jobs/calendars/approvals.py` check who may decide, four eyes and the occurrence.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Annotated, Any, Final

from django.utils import timezone
from django.utils.translation import gettext_noop as _
from pydantic import Field

from jobs.actions.common import deletion
from jobs.actions.declared import Action, Call, Noun, Reason, Shown, sentence
from jobs.actions.texts import Moment
from jobs.calendars import approvals
from jobs.calendars.changes import changing
from jobs.calendars.hours import entry_of
from jobs.calendars.reads.occurrence_list import named_occurrences
from jobs.calendars.reads.window_state import (
    needing_approval,
    seen_of,
    to_be_approved,
    with_approval,
    words_of,
)
from jobs.calendars.visibility import visible_rows
from jobs.calendars.windows import delete_window
from jobs.core.phrases import joined, phrase
from jobs.models import Scope, Window, WindowDecision

OFFERED: Final = 20
"""The occurrences that a form offers."""


class DecisionToMake(Reason):
    """A decision on all occurrences or on one, with its reason."""

    occurrence_at: Annotated[Moment | None, Shown(_("Which"))] = Field(
        None, description="The start of one occurrence; null: all of them."
    )


class ApprovalToGive(DecisionToMake):
    """An approval, of all occurrences or of one."""

    expires_at: Annotated[
        Moment | None,
        Shown(_("Approved until"), _("Later occurrences are not approved. Empty: without an end.")),
    ] = Field(None, description="Occurrences that start later are not approved.")


def _title(window: Any) -> str:
    return joined(filter(None, (words_of(window), window.reason)), " · ")


def _occurrences(window: Any) -> Sequence[tuple[str, str]]:
    try:
        found = named_occurrences(entry_of(window), after=timezone.now(), count=OFFERED)
    # Rows may be written by raw SQL.
    except Exception:
        found = []
    return [("", phrase(_("all of them"))), *found]


def _with(decide: Callable[..., WindowDecision]) -> Callable[[Any, Call], WindowDecision]:
    return lambda window, call: decide(window, actor=call.actor, **call.body.model_dump())


_decision = partial(
    Action,
    scope=Scope.APPROVE,
    permission=approvals.PERMISSION,
    body=DecisionToMake,
    choices={"occurrence_at": _occurrences},
    done=sentence(_("The decision is stored.")),
)

WINDOWS: Final = Noun(
    name="window",
    rows=lambda: Window.objects.select_related("calendar__owner").prefetch_related("decisions"),
    owner="calendar__owner",
    visible=lambda rows, access: visible_rows(rows, access, path="calendar__"),
    section="calendars",
    view="jobs.view_window",
    title=_title,
    seen=seen_of,
    # Its calendar is locked first, as by every change of windows.
    changing=lambda window: changing(window.calendar),
    actions=(
        _decision(
            name="approve",
            label=_("Approve"),
            explains=_(
                "Waiting runs may start in it. Under four eyes, another person than its requesters"
                " approves it. A change that may open more needs a new approval; a change that"
                " only narrows it does not."
            ),
            body=ApprovalToGive,
            offered=needing_approval,
            refused=_("This needs no approval."),
            act=_with(approvals.approve),
        ),
        _decision(
            name="reject",
            label=_("Reject"),
            explains=_("It does not count, and nothing starts in it."),
            offered=to_be_approved,
            refused=_("This is decided already, or needs no approval."),
            act=_with(approvals.reject),
        ),
        _decision(
            name="revoke",
            label=_("Revoke"),
            explains=_(
                "It no longer counts. Its active runs end as the calendar says for a close."
            ),
            offered=with_approval,
            refused=_("This is not approved."),
            act=_with(approvals.revoke),
            is_destructive=True,
        ),
        deletion(
            explains=_(
                "The decisions on it are deleted, too. The last window of a calendar stays:"
                " without it the calendar would always be open."
            ),
            permission="jobs.delete_window",
            act=lambda window, call: delete_window(window, **call.audited),
        ),
    ),
)
