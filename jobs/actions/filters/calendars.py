"""The filters of calendars, and of windows."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from django.db.models import Exists, OuterRef
from django.utils.translation import gettext_lazy
from django.utils.translation import gettext_noop as _
from pydantic import Field

from jobs.actions.conditions import Rows
from jobs.actions.declared import Shown
from jobs.actions.filters.declared import ID_LIMIT, By, Choices, Filter, OwnedBy, by_owner
from jobs.actions.texts import Name, Slug
from jobs.calendars.reads.window_state import (
    needing_approval,
    to_be_approved,
    with_approval,
    with_decision,
)
from jobs.models import Decision, Window, WindowEffect
from jobs.models.access import Access

_STATES: Final = (
    ("requested", gettext_lazy("to be approved")),
    *Decision.choices,
    ("none", gettext_lazy("needs none")),
)


def _to_be_approved(calendars: Rows, _value: str, _access: Access) -> Rows:
    return calendars.filter(Exists(to_be_approved(Window.objects.filter(calendar=OuterRef("pk")))))


def _in_state(windows: Rows, state: str, _access: Access) -> Rows:
    if state == "requested":
        return to_be_approved(windows)
    if state == "none":
        return windows.exclude(pk__in=needing_approval(Window.objects.all()).values("pk"))
    return with_approval(windows) if state == "approved" else with_decision(windows, state)


class CalendarFilter(Filter):
    """The filters of a list of calendars."""

    owner: OwnedBy = None
    name: Annotated[Name | None, By("name"), Field(description="The whole name.")] = None
    search: Annotated[
        Name | None,
        Shown(_("A part of the name")),
        By("name__icontains"),
        Field(description="A part of the name."),
    ] = None
    approval: Annotated[
        Literal["asked"] | None,
        Shown(_("Approval")),
        Choices((("asked", gettext_lazy("windows to be approved")),)),
        By(_to_be_approved),
        Field(description="Only calendars with windows that need an approval and have none."),
    ] = None


class WindowFilter(Filter):
    """The filters of a list of windows; a window must match all of them."""

    calendar: Annotated[int | None, By("calendar"), Field(ge=1, le=ID_LIMIT)] = None
    owner: Annotated[Slug | None, by_owner("calendar__owner_id")] = None
    effect: Annotated[
        WindowEffect | None, Shown(_("Effect")), Choices(WindowEffect.choices), By("effect")
    ] = None
    state: Annotated[
        Literal["requested", "approved", "rejected", "revoked", "none"] | None,
        Shown(_("Approval")),
        Choices(_STATES),
        By(_in_state),
        Field(
            description="`requested`: an approval is needed, and there is no decision yet."
            " `none`: none is needed."
        ),
    ] = None
