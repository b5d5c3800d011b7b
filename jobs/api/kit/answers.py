"""Answers of the operations that are called most: sent as they were made.

django-ninja would check an answer again, field by field, which takes longer than to store a row.
"""

from __future__ import annotations

from django.http import HttpResponse
from pydantic import BaseModel

MEDIA_TYPE = "application/json; charset=utf-8"


def sent(made: BaseModel, response: HttpResponse, *, status: int = 200) -> HttpResponse:
    """Return a checked answer with the headers that the operation has set on `response`."""
    headers = {**response.headers, "Content-Type": MEDIA_TYPE}
    return HttpResponse(made.model_dump_json(), status=status, headers=headers)
