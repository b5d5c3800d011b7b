"""The answer to an override: runs start outside their windows, with a reason that is audited."""

from __future__ import annotations

from ninja import Schema
from pydantic import Field


class Overridden(Schema):
    """The effect of an override."""

    overridden: int = Field(description="Waiting runs that had to obey their windows before.")
    held_by: list[str] = Field(
        description="Shared calendars that still hold some of these runs: only callers that may "
        "operate the whole installation override them."
    )
