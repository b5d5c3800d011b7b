"""Actions on calendars."""

from __future__ import annotations

from typing import Annotated, Any, Final

from django.utils.translation import gettext_noop as _
from pydantic import BaseModel, ConfigDict, Field

from jobs.actions.common import change, deletion
from jobs.actions.declared import Action, Creation, Noun, Reason, Shown, sentence
from jobs.actions.interests import Whose, without_owner
from jobs.actions.texts import Text
from jobs.calendars import changes, ical_feed
from jobs.calendars.options import change_calendar, create_calendar
from jobs.calendars.visibility import visible_rows
from jobs.models import Calendar, Scope
from jobs.models.calendar import CUT_OFF_LIMIT, SPREAD_LIMIT, EndBehaviour


def _as_stored(name: str) -> Shown:
    """Return how a form shows a field as that of the model."""
    field: Any = Calendar._meta.get_field(name)
    choices = {"choices": lambda: field.choices} if field.choices else {}
    return Shown(field.verbose_name, field.help_text, **choices)


CalendarName = Annotated[
    Text, Field(min_length=1, max_length=200, pattern=r"\S"), _as_stored("name")
]
CutOff = Annotated[
    int,
    Field(
        ge=0, le=CUT_OFF_LIMIT, description="In this many seconds before the close no run starts."
    ),
    _as_stored("cut_off_seconds"),
]
Spread = Annotated[
    int,
    Field(
        ge=0,
        le=SPREAD_LIMIT,
        description="Starts of runs that waited are spread over this many seconds.",
    ),
    _as_stored("spread_seconds"),
]


class CalendarOptions(BaseModel):
    """Options of a calendar."""

    model_config = ConfigDict(extra="forbid")

    name: CalendarName = ""
    cut_off_seconds: CutOff = 0
    end: Annotated[EndBehaviour, _as_stored("end")] = EndBehaviour.LET_RUN
    spread_seconds: Spread = 0
    needs_approval: Annotated[bool, _as_stored("needs_approval")] = True
    four_eyes: Annotated[bool, _as_stored("four_eyes")] = True


class CalendarToCreate(CalendarOptions):
    """A new calendar. Without a window it is always open."""

    name: CalendarName
    owner: Whose = None
    is_for_all: bool = Field(
        False,
        description="Shared; only callers with `admin` for all owners create these.",
    )


class CalendarChange(CalendarOptions, Reason):
    """Options to be changed; those that are left out stay."""


CALENDARS: Final = Noun(
    name="calendar",
    rows=lambda: Calendar.objects.select_related("owner"),
    visible=visible_rows,
    view="jobs.view_calendar",
    creation=Creation(
        label=_("Create a calendar"),
        explains=_("Without a window it is always open. It applies to nothing until attached."),
        permission="jobs.add_calendar",
        body=CalendarToCreate,
        make=lambda body, owner, actor: create_calendar(
            owner=owner, actor=actor, **without_owner(body)
        ),
        done=sentence(_("%(row)s is created.")),
    ),
    actions=(
        change(
            explains=_("Waiting runs follow the new options within a second."),
            permission="jobs.change_calendar",
            body=CalendarChange,
            act=lambda calendar, call: change_calendar(calendar, **call.given, **call.audited),
        ),
        Action(
            name="publish",
            label=_("New feed address"),
            explains=_(
                "Calendar programs read windows, freezes and the number of planned runs there,"
                " without a login: keep the address secret. An older address ends."
            ),
            scope=Scope.ADMIN,
            permission="jobs.change_calendar",
            act=lambda calendar, call: ical_feed.feed_path(
                ical_feed.new_secret(calendar, **call.audited)
            ),
            secret=str,
            done=sentence(_("This is the address. It is not shown again.")),
        ),
        Action(
            name="unpublish",
            label=_("Remove the feed address"),
            explains=_("Calendar programs read nothing from then on."),
            scope=Scope.ADMIN,
            permission="jobs.change_calendar",
            applies=lambda calendars: calendars.filter(feed_hash__isnull=False),
            refused=_("%(row)s has no feed address."),
            is_repeatable=True,
            act=lambda calendar, call: ical_feed.forget_secret(calendar, **call.audited),
            done=sentence(_("%(row)s has no feed address now.")),
        ),
        deletion(
            explains=_(
                "Its windows are deleted, too. What it applied to is open, unless other calendars"
                " close it."
            ),
            permission="jobs.delete_calendar",
            act=lambda calendar, call: changes.delete(calendar, **call.audited),
        ),
    ),
)
