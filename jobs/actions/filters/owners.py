"""The filters of owners, and of the audit."""

from __future__ import annotations

from typing import Annotated

from django.utils.translation import gettext_lazy
from django.utils.translation import gettext_noop as _
from pydantic import Field

from jobs.actions.conditions import Rows
from jobs.actions.declared import Shown
from jobs.actions.filters.declared import AGES, Age, By, Choices, Filter, OwnedBy, by_age
from jobs.actions.texts import Moment, Slug, Text
from jobs.models.access import Access
from jobs.models.owner import PAUSED
from jobs.owners.audited import ACTIONS

_Word = Annotated[Text, Field(max_length=64)]


def _paused(owners: Rows, value: bool, _access: Access) -> Rows:
    return owners.filter(PAUSED if value else ~PAUSED)


class OwnerFilter(Filter):
    """The filters of a list of owners."""

    search: Annotated[
        Slug | None,
        Shown(_("Begins with")),
        By("slug__startswith"),
        Field(description="The beginning of the slug."),
    ] = None
    paused: Annotated[
        bool | None,
        Shown(_("Pause")),
        Choices((("yes", gettext_lazy("paused now")), ("no", gettext_lazy("not paused")))),
        By(_paused),
    ] = None


class AuditFilter(Filter):
    """The filters of the audit; an action must match all of them."""

    owner: OwnedBy = None
    actor: Annotated[
        Annotated[Text, Field(max_length=150)] | None,
        Shown(_("Who"), _("the whole name")),
        By("actor_name"),
        Field(description="In full."),
    ] = None
    action: Annotated[
        _Word | None,
        Shown(_("What")),
        Choices(tuple((str(action), action) for action in sorted(ACTIONS))),
        By("action"),
        Field(description="Such as `cancel`."),
    ] = None
    object_type: Annotated[
        _Word | None,
        Shown(_("Kind of object")),
        By("object_type"),
        Field(description="Such as `run`."),
    ] = None
    object_id: Annotated[_Word | None, Shown(_("Its id")), By("object_id")] = None
    age: Annotated[
        Age | None,
        Shown(_("When")),
        AGES,
        by_age(lambda rows, moment, _: rows.filter(at__gte=moment)),
    ] = None
    after: Annotated[Moment | None, By("at__gte"), Field(description="At this time or later.")] = (
        None
    )
    before: Annotated[Moment | None, By("at__lt"), Field(description="Before this time.")] = None
