"""The verbs that approve, reject and revoke all occurrences of a window, or a coming one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from django.db import transaction
from django.utils.translation import gettext_lazy as lazy

from jobs.admin.kit.verbs import Act, ReasonForm, Verb, always
from jobs.calendars import approvals
from jobs.calendars.reads.window_state import (
    mark_of,
    needing_approval,
    to_be_approved,
    with_approval,
)
from jobs.models import Window, WindowDecision
from jobs.pages.calendars.decision_fields import (
    StandingFields,
    WhichFields,
    decision_of,
    form_of,
)


class WhichForm(WhichFields, ReasonForm):
    """All occurrences, or one of the next, and a reason."""


class StandingForm(StandingFields, ReasonForm):
    """The end of an approval of all occurrences, and a reason."""


class ApproveForm(WhichFields, StandingFields, ReasonForm):
    """All occurrences, with an end of the approval, or one; and a reason."""


def _decide(decide: Callable[..., WindowDecision]) -> Callable[[Sequence[int], Act], int]:
    def act(keys: Sequence[int], act: Act) -> int:
        """Decide on all windows, or on none if one is refused."""
        given = {"actor": act.actor, **decision_of(act.data)}
        with transaction.atomic():
            windows = Window.objects.select_related("calendar").filter(pk__in=keys)
            return len([decide(window, **given) for window in windows.order_by("pk")])

    return act


APPROVE = Verb(
    name="approve",
    label=lazy("Approve"),
    permission=approvals.PERMISSION,
    applies=needing_approval,
    act=_decide(approvals.approve),
    done=lazy("approved"),
    refused=always(lazy("This needs no approval.")),
    warning=lazy(
        "Waiting runs may start in it. A change that may open more needs a new approval;"
        " a change that only narrows it does not."
    ),
    form=StandingForm,
    form_of=partial(form_of, ApproveForm),
    mark=mark_of,
)
REJECT = Verb(
    name="reject",
    label=lazy("Reject"),
    permission=approvals.PERMISSION,
    applies=to_be_approved,
    act=_decide(approvals.reject),
    done=lazy("rejected"),
    refused=always(lazy("This is decided already, or needs no approval.")),
    form_of=partial(form_of, WhichForm),
    mark=mark_of,
)
REVOKE = Verb(
    name="revoke",
    label=lazy("Revoke"),
    permission=approvals.PERMISSION,
    applies=with_approval,
    act=_decide(approvals.revoke),
    done=lazy("revoked"),
    refused=always(lazy("This is not approved.")),
    warning=lazy("It no longer counts. Its active runs end as the calendar says for a close."),
    form_of=partial(form_of, WhichForm),
    mark=mark_of,
)
