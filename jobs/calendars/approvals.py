"""Approvals: a user or an API token approves or rejects a window or one occurrence of it, or
revokes an approval.

A decision is on the window as it is then: a change that may open more needs a new approval.
All decisions are stored, the newest counts, and each is audited.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from jobs.calendars.changes import changing
from jobs.calendars.hours import entry_of
from jobs.core.errors import ApprovalRefused, OptionError
from jobs.core.inputs import REASON_LIMIT, refuse_naive, refuse_text
from jobs.core.sql import now
from jobs.models import (
    ApiToken,
    AuditEntry,
    Calendar,
    Decision,
    Membership,
    Role,
    Scope,
    Window,
    WindowDecision,
    WindowEffect,
)
from jobs.models.access import access_of
from jobs.models.token import columns_of, identities
from jobs.models.verbs import Actor
from jobs.windows import Entry, start_of

PERMISSION: Final = "jobs.approve_window"
ROLES: Final = (Role.APPROVER, Role.ADMIN)
_VERBS: Final = {
    Decision.APPROVED: "approve",
    Decision.REJECTED: "reject",
    Decision.REVOKED: "revoke",
}


def may_approve(user: Any, window: Window) -> bool:
    """Say whether a user may decide on a window, by their role at its calendar's owner.

    A token needs the scope `approve` there. On a shared calendar only superusers decide, and tokens
    for all owners. Four eyes are checked by `approve` alone.
    """
    if isinstance(user, ApiToken):
        may = access_of(user).has(Scope.APPROVE, window.calendar.owner_id)
        return may and access_of(user).permits(PERMISSION)
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
    actor: Actor,
    occurrence_at: datetime | None = None,
    expires_at: datetime | None = None,
    reason: str = "",
) -> WindowDecision:
    """Approve a window, or the occurrence that starts at `occurrence_at`; return the decision.

    Occurrences that start after `expires_at` are not approved. Raises ApprovalRefused for a freeze,
    which needs no approval, for a user or token that may not decide (`may_approve`), and under four
    eyes for all that requested the window or changed it since its last approval, even superusers,
    for makers of these tokens, and for other tokens of the same makers; OptionError for an invalid
    time or text.
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
    actor: Actor,
    occurrence_at: datetime | None = None,
    reason: str = "",
) -> WindowDecision:
    """Reject a window, or one occurrence of it; return the decision. Raises as `approve` does."""
    return _decide(
        window, Decision.REJECTED, actor=actor, occurrence_at=occurrence_at, reason=reason
    )


def revoke(
    window: Window,
    *,
    actor: Actor,
    occurrence_at: datetime | None = None,
    reason: str = "",
) -> WindowDecision:
    """Revoke an approval; return the decision. Raises as `approve` does.

    The calendar's end behaviour says whether active runs are stopped.
    """
    return _decide(
        window, Decision.REVOKED, actor=actor, occurrence_at=occurrence_at, reason=reason
    )


def _decide(
    window: Window,
    decision: Decision,
    *,
    actor: Actor,
    occurrence_at: datetime | None,
    reason: str,
    expires_at: datetime | None = None,
) -> WindowDecision:
    if actor is None or not (isinstance(actor, ApiToken) or hasattr(actor, "has_perm")):
        raise OptionError("actor", f"is the user or token that decides, not {actor!r:.80}")
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
            problem = f"four eyes: {actor.get_username()} has asked for this window, or changed it"
            raise ApprovalRefused(str(calendar), problem)
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
            **columns_of(actor, "actor", "token"),
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
            occurrence_at=occurrence_at and occurrence_at.isoformat(),
            expires_at=expires_at and expires_at.isoformat(),
        )
    return made


def _who_may(actor: Any, calendar: Calendar) -> str:
    who = actor.get_username()
    owner = calendar.owner
    if isinstance(actor, ApiToken):
        where = "all owners, as it is shared" if owner is None else owner.slug
        needed = f"the scope {Scope.APPROVE.value!r} for {where}"
        return f"{who} may not decide on its windows: that takes {needed}"
    if owner is None:
        return f"{who} may not decide on its windows: it is shared, which takes a superuser"
    return (
        f"{who} may not decide on its windows: that takes the permission {PERMISSION}, and the role"
        f" {' or '.join(ROLES)} at {owner.slug}"
    )


def _is_own(window: Window, actor: Any) -> bool:
    if not window.calendar.four_eyes:
        return False
    asked = {(kind, key) for kind, key in window.requesters}
    tokens = ApiToken.objects.filter(pk__in=[key for kind, key in asked if kind == "token"])
    return not asked.union(*map(identities, tokens)).isdisjoint(identities(actor))


def _start_of(entry: Entry, at: datetime) -> datetime:
    """Return the start of the occurrence at a moment; refuse any other, naming the next start.

    An occurrence of which only a part is valid may be named by the start of that part.
    """
    start, following = start_of(entry, at)
    if start is not None:
        return start
    hint = "none follows within a year"
    if following:
        hint = f"the next one starts {following:%Y-%m-%d %H:%M:%S %Z}"
    raise OptionError("occurrence_at", f"is the start of no occurrence; {hint}")
