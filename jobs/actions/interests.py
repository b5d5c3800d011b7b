"""Fields of webhooks and mail subscriptions: the events that both ask for."""

from __future__ import annotations

from typing import Annotated, Any

from django.utils.translation import gettext_noop as _
from pydantic import BaseModel, Field

from jobs.actions.declared import Shown
from jobs.actions.texts import Slug, TaskName, Text
from jobs.models import EventType
from jobs.runs.reads.choices import word_of
from jobs.system.notices.interests import NAME_LIMIT, PATTERNS_LIMIT, STATES

Name = Annotated[Text, Field(min_length=1, max_length=NAME_LIMIT, pattern=r"\S"), Shown(_("Name"))]
Events = Annotated[
    list[EventType],
    Field(min_length=1, max_length=len(EventType)),
    Shown(_("Events"), choices=lambda: EventType.choices),
]
Tasks = Annotated[
    list[TaskName],
    Field(max_length=PATTERNS_LIMIT),
    Shown(_("Tasks"), _("Names with * for any text, separated by commas. Empty: all tasks.")),
]
States = Annotated[
    list[Text],
    Field(max_length=4, description="States of ended runs."),
    Shown(
        _("States"),
        _("Only runs that end in these states. Empty: all ends."),
        choices=lambda: [(state, word_of(state)) for state in STATES],
    ),
]
JobId = Annotated[int, Field(ge=1, le=2**63 - 1)]
Whose = Annotated[Slug | None, Field(description="Needed by callers with several owners.")]
ForAll = Annotated[bool, Field(description="Events of all owners; without `owner`.")]


def without_owner(body: BaseModel) -> dict[str, Any]:
    """Return the fields of a body, without its owner."""
    return body.model_dump(exclude={"owner", "is_for_all"})
