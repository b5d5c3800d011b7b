"""Answers as JSON, all written by pydantic: moments keep their microseconds everywhere.

Arguments and results may hold bytes, which JSON lacks: they are sent in URL-safe base64.
"""

from __future__ import annotations

from typing import Any, Final

from django.http import HttpRequest, HttpResponse
from ninja.renderers import BaseRenderer
from pydantic import BaseModel, ConfigDict
from pydantic_core import to_json

WITH_BYTES: Final = ConfigDict(ser_json_bytes="base64")
"""The configuration of models with values of tasks."""


def facts_of(schema: type[BaseModel], row: Any, **own: Any) -> dict[str, Any]:
    """Return the fields of an answer: `own`, and those that a row has by the same names."""
    return own | {name: getattr(row, name) for name in schema.model_fields if name not in own}


class JsonRenderer(BaseRenderer):
    """Writes the answers of all operations."""

    media_type = "application/json"

    def render(self, request: HttpRequest, data: Any, *, response_status: int) -> bytes:
        """Return an answer's body."""
        return to_json(data, fallback=str, bytes_mode="base64")


def sends_text(description: str, *media_types: str) -> dict[str, Any]:
    """Return the `openapi_extra` of an operation that sends text of these media types."""
    content = {one.partition(";")[0]: {"schema": {"type": "string"}} for one in media_types}
    return {"responses": {200: {"description": description, "content": content}}}


def sent(made: BaseModel, response: HttpResponse, *, status: int = 200) -> HttpResponse:
    """Return an answer as it was made, with the headers that the operation has set on `response`.

    For the operations that are called most: django-ninja would check it again, field by field,
    which takes longer than to store a row.
    """
    headers = {**response.headers, "Content-Type": "application/json; charset=utf-8"}
    return HttpResponse(made.model_dump_json(), status=status, headers=headers)
