"""Answers as JSON, all written by pydantic: moments keep their microseconds everywhere."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from ninja.renderers import BaseRenderer
from pydantic import BaseModel
from pydantic_core import to_json


class JsonRenderer(BaseRenderer):
    """Writes the answers of all operations."""

    media_type = "application/json"

    def render(self, request: HttpRequest, data: Any, *, response_status: int) -> bytes:
        """Return an answer's body."""
        return to_json(data, fallback=str)


def sent(made: BaseModel, response: HttpResponse, *, status: int = 200) -> HttpResponse:
    """Return an answer as it was made, with the headers that the operation has set on `response`.

    For the operations that are called most: django-ninja would check it again, field by field,
    which takes longer than to store a row.
    """
    headers = {**response.headers, "Content-Type": "application/json; charset=utf-8"}
    return HttpResponse(made.model_dump_json(), status=status, headers=headers)
