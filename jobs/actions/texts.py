"""Texts in addresses and bodies, refused where PostgreSQL could not store them."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, AwareDatetime, BeforeValidator, Field

from jobs.core.inputs import KEY_LIMIT, LABEL_LIMIT, REASON_LIMIT, in_utc
from jobs.models.fields import OWNER_LIMIT


def _storable(text: str) -> str:
    if "\x00" in text:
        raise ValueError("holds NUL, which PostgreSQL cannot store")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("holds a lone surrogate, which is no character") from None
    return text


def _is_written_out(value: Any) -> Any:
    # Pydantic would take a number, such as a year, for seconds since 1970.
    if isinstance(value, str) and "-" in value[1:]:
        return value
    raise ValueError("is text, such as 2026-01-03T22:00:00Z")


Text = Annotated[str, AfterValidator(_storable)]
Slug = Annotated[Text, Field(max_length=OWNER_LIMIT, description="An owner, by its slug.")]
Name = Annotated[Text, Field(max_length=LABEL_LIMIT)]
TaskName = Annotated[Text, Field(max_length=255, description="A task, by its full name.")]
Key = Annotated[Text, Field(min_length=1, max_length=KEY_LIMIT)]
Reason = Annotated[
    Text, Field(max_length=REASON_LIMIT, description="Stored in the history and the audit.")
]
NeededReason = Annotated[Reason, Field(min_length=1, pattern=r"\S")]
Moment = Annotated[
    AwareDatetime,
    BeforeValidator(_is_written_out),
    AfterValidator(in_utc),
    Field(description="RFC 3339, with an offset or Z."),
]
