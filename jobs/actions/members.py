"""Actions on members of owners."""

from __future__ import annotations

from typing import Annotated, Any, Final

from django.utils.translation import gettext_noop as _
from pydantic import Field

from jobs.actions.common import change, deletion
from jobs.actions.declared import Call, Creation, Noun, Reason, Shown, sentence
from jobs.actions.texts import Text
from jobs.core.phrases import Phrase, phrase
from jobs.models import Membership, Role
from jobs.owners.members import add_member, change_member, locked_members, remove_member

ROLE: Final = Shown(_("Role"), choices=lambda: Role.choices)


class MemberToCreate(Reason):
    """A user who becomes a member."""

    user: Annotated[
        Text,
        Field(min_length=1, max_length=150, description="The user's name."),
        Shown(_("User"), _("The user's name.")),
    ]
    role: Annotated[Role, ROLE]


class MemberChange(Reason):
    """The role of a member."""

    role: Annotated[Role, ROLE] = Role.VIEWER


def _make(body: Any, owner: Any, actor: Any) -> Membership:
    return add_member(owner, body.user, role=body.role, actor=actor, reason=body.reason)


def _change(member: Any, call: Call) -> Membership:
    role = call.given.get("role", member.role)
    return change_member(member, role=role, **call.audited)


def _title(member: Membership) -> Phrase:
    return phrase(_("%(user)s, member of %(owner)s"), user=member.user, owner=member.owner)


MEMBERS: Final = Noun(
    name="member",
    rows=lambda: Membership.objects.select_related("owner"),
    title=_title,
    section="owners",
    shown_by="owner",
    view="jobs.view_membership",
    # Without the lock, two admins could remove each other at the same time.
    changing=lambda member: locked_members(member.owner),
    creation=Creation(
        label=_("Add a member"),
        permission="jobs.add_membership",
        body=MemberToCreate,
        make=_make,
        done=sentence(_("%(row)s is a member now.")),
    ),
    actions=(
        change(
            explains=_(
                "The last admin of an owner stays one, unless an admin of the installation changes"
                " it."
            ),
            permission="jobs.change_membership",
            body=MemberChange,
            act=_change,
        ),
        deletion(
            explains=_(
                "The user sees nothing of this owner any more. The last admin of an owner stays,"
                " unless an admin of the installation deletes it."
            ),
            permission="jobs.delete_membership",
            act=lambda member, call: remove_member(member, **call.audited),
        ),
    ),
)
