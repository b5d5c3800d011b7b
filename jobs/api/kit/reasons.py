"""The reason of a change: in the body of an action, and in the query of a deletion."""

from __future__ import annotations

from typing import Annotated

from ninja import Query, Schema
from pydantic import ConfigDict

from jobs.actions.texts import Reason


class ReasonBody(Schema):
    """The reason of an action."""

    model_config = ConfigDict(extra="forbid")

    reason: Reason = ""


class ReasonQuery(Schema):
    """The reason of a deletion."""

    reason: Reason = ""


WithReason = Annotated[ReasonQuery, Query()]
