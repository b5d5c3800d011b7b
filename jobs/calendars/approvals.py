"""Approving: somebody agrees to a window, or to one occurrence of it, or takes that back.

A decision is on the window as it is then: a change that may open more needs a new approval.
All decisions are kept, the newest counts, and each is audited.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from jobs.calendars.changes import changing
from jobs.calendars.hours import entry_of
from jobs.core.errors import ApprovalRefused, OptionError
from jobs.core.inputs import REASON_LIMIT, refuse_naive, refuse_text
from jobs.core.sql import now
from jobs.models import (
    AuditEntry,
    Calendar,
    Decision,
    Membership,
    Role,
    Window,
    WindowDecision,
    WindowEffect,
)
from jobs.windows import Entry, start_of

if TYPE_CHECKING:
    from django.contrib.auth.base_user import AbstractBaseUser

PERMISSION: Final = "jobs.approve_window"
ROLES: Final = (Role.APPROVER, Role.ADMIN)
_VERBS: Final = {
    Decision.APPROVED: "approve",
    Decision.REJECTED: "reject",
    Decision.REVOKED: "revoke",
}


def may_approve(user: Any, window: Window) -> bool:
    """Say whether a person may decide on a window, as its calendar's owner has it.

    Of a calendar that is shared superusers decide. Four eyes are looked at by `approve` alone.
    """
    if not user.is_active:
        return False
    if user.is_superuser:
        return True
    members = Membership.objects.filter(
        owner=window.calendar.owner_id, user_id=user.pk, role__in=ROLES
    )
    return bool(user.has_perm(PERMISSION)) and members.exists()


def approve(
    window: Window,
    *,
    actor: AbstractBaseUser,
    occurrence_at: datetime | None = None,
    expires_at: datetime | None = None,
    reason: str = "",
) -> WindowDecision:
    """Agree to a window, or to the occurrence that starts then; return the decision.

    What starts after `expires_at` is not agreed to. Raises ApprovalRefused for a freeze, which
    always counts, for who may not (`may_approve`), and for who asked for it where four eyes are
    needed, whoever that is; OptionError for a time or a text that cannot be kept.
    """
    return _decide(
        window,
        Decision.APPROVED,
        actor=actor,
        occurrence_at=occurrence_at,
        expires_at=expires_at,
        reason=reason,
    )


def reject(
    window: Window,
    *,
    actor: AbstractBaseUser,
    occurrence_at: datetime | None = None,
    reason: str = "",
) -> WindowDecision:
    """Refuse a window, or one occurrence of it; return the decision. Raises as `approve` does."""
    return _decide(
        window, Decision.REJECTED, actor=actor, occurrence_at=occurrence_at, reason=reason
    )


def revoke(
    window: Window,
    *,
    actor: AbstractBaseUser,
    occurrence_at: datetime | None = None,
    reason: str = "",
) -> WindowDecision:
    """Take back what was agreed to; return the decision. Raises as `approve` does.

    What runs in it is left or stopped, as its calendar's end behaviour says.
    """
    return _decide(
        window, Decision.REVOKED, actor=actor, occurrence_at=occurrence_at, reason=reason
    )


def _decide(
    window: Window,
    decision: Decision,
    *,
    actor: AbstractBaseUser,
    occurrence_at: datetime | None,
    reason: str,
    expires_at: datetime | None = None,
) -> WindowDecision:
    if not _is_user(actor):
        raise OptionError("actor", f"is the user who decides, not {actor!r:.80}")
    refuse_text("reason", reason, most=REASON_LIMIT)
    for option, moment in (("occurrence_at", occurrence_at), ("expires_at", expires_at)):
        if moment is not None:
            refuse_naive(option, moment)
    with changing(window.calendar) as calendar:
        as_it_is = Window.objects.select_related("calendar").get(pk=window.pk)
        if as_it_is.effect == WindowEffect.FREEZE:
            raise ApprovalRefused(str(calendar), "a freeze always counts; remove it instead")
        if not may_approve(actor, as_it_is):
            raise ApprovalRefused(str(calendar), _who_may(actor, calendar))
        if decision is Decision.APPROVED and _is_own(as_it_is, actor):
            raise ApprovalRefused(
                str(calendar), f"four eyes: {actor.get_username()} has asked for this window"
            )
        if expires_at is not None and expires_at <= now():
            raise OptionError("expires_at", "is in the past")
        if occurrence_at is not None:
            occurrence_at = _start_of(replace(entry_of(as_it_is), approved=None), occurrence_at)
            if expires_at is not None and expires_at <= occurrence_at:
                raise OptionError("expires_at", "is not after the occurrence's start")
        made = WindowDecision.objects.create(
            window=as_it_is,
            revision=as_it_is.revision,
            decision=decision,
            occurrence_at=occurrence_at,
            expires_at=expires_at,
            actor_id=actor.pk,
            actor_name=actor.get_username(),
            reason=reason,
        )
        AuditEntry.write(
            f"{_VERBS[decision]} window",
            on=as_it_is,
            actor=actor,
            reason=reason,
            calendar=calendar.name,
            revision=as_it_is.revision,
            occurrence_at=_text(occurrence_at),
            expires_at=_text(expires_at),
        )
    return made


def _is_user(given: Any) -> bool:
    return hasattr(given, "get_username") and hasattr(given, "has_perm")


def _who_may(actor: AbstractBaseUser, calendar: Calendar) -> str:
    who = actor.get_username()
    if calendar.owner is None:
        return f"{who} may not decide on its windows: it is shared, which takes a superuser"
    return (
        f"{who} may not decide on its windows: that takes the permission {PERMISSION}, and the role"
        f" {' or '.join(ROLES)} at {calendar.owner.slug}"
    )


def _is_own(window: Window, actor: AbstractBaseUser) -> bool:
    return window.calendar.four_eyes and window.requested_by_id == actor.pk


def _start_of(entry: Entry, at: datetime) -> datetime:
    """Return the start of the occurrence that starts then; refuse another moment, naming the next.

    One that is valid only in part may be named by the start of that part.
    """
    start, following = start_of(entry, at)
    if start is not None:
        return start
    hint = (
        f"the next one starts {following:%Y-%m-%d %H:%M:%S %Z}"
        if following
        else "none follows within a year"
    )
    raise OptionError("occurrence_at", f"is the start of no occurrence; {hint}")


def _text(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()
