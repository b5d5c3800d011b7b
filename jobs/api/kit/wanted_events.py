"""Fields of bodies that webhooks and mail subscriptions share."""

from __future__ import annotations

from typing import Annotated

from ninja import Field

from jobs.actions.texts import TaskName, Text
from jobs.models import EventType
from jobs.system.notices.interests import NAME_LIMIT, PATTERNS_LIMIT

Name = Annotated[Text, Field(min_length=1, max_length=NAME_LIMIT, pattern=r"\S")]
Events = Annotated[list[EventType], Field(min_length=1, max_length=len(EventType))]
Tasks = Annotated[list[TaskName], Field(max_length=PATTERNS_LIMIT)]
States = Annotated[list[Text], Field(max_length=4, description="States of ended runs.")]
