"""Actions on owners."""

from __future__ import annotations

from typing import Annotated, Any, Final

from django.utils.translation import gettext_noop as _
from pydantic import Field

from jobs.actions.declared import Action, Call, Noun, Reason, Shown, told
from jobs.actions.texts import Moment
from jobs.models import Owner, Scope
from jobs.owners.limits import pause_owner, resume_owner


class OwnerPause(Reason):
    """A pause: no further run of the owner starts; active runs continue."""

    until: Annotated[Moment | None, Shown(_("Until"), _("Empty: until a person resumes it."))] = (
        Field(None, description="Null: until it is resumed.")
    )


def _pause(owner: Any, call: Call) -> None:
    pause_owner(owner, until=call.body.until, **call.audited)


def _resume(owner: Any, call: Call) -> None:
    resume_owner(owner, **call.audited)


OWNERS: Final = Noun(
    name="owner",
    rows=Owner.objects.all,
    key="slug",
    owner="pk",
    key_kind="str",
    view="jobs.view_owner",
    actions=(
        Action(
            name="pause",
            label=_("Pause"),
            explains=_("No further run starts. Runs that a worker has started continue."),
            scope=Scope.OPERATE,
            permission="jobs.pause_owner",
            body=OwnerPause,
            act=_pause,
            done=told(_("%(row)s is paused: no further run starts.")),
        ),
        Action(
            name="resume",
            label=_("Resume"),
            explains=_("Waiting runs may start at once."),
            scope=Scope.OPERATE,
            permission="jobs.pause_owner",
            applies=lambda owners: owners.paused(),
            refused=_("%(row)s is not paused."),
            is_repeatable=True,
            act=_resume,
            done=told(_("%(row)s is resumed: waiting runs may start at once.")),
        ),
    ),
)
