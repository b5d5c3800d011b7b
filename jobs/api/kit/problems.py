"""Problem details (RFC 9457): every answer that is no success has this form."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final

from django.http import HttpResponse
from ninja import Schema
from pydantic import Field

MEDIA_TYPE: Final = "application/problem+json"
ERRORS_LIMIT: Final = 10_000
"""Most single errors in one answer: as many as a bulk has elements."""


class FieldProblem(Schema):
    """One wrong field of a request."""

    field: str = Field(description="The dotted path to the field, such as `arguments.0.host`.")
    detail: str
    index: int | None = Field(None, description="The element of a bulk, from 0.")


class ProblemDetails(Schema):
    """Why a request had no effect."""

    type: str = Field(description="A URN with the code.")
    title: str
    status: int
    detail: str
    code: str = Field(description="A stable name of the problem, for programs.")
    field: str | None = Field(None, description="The dotted path to the first wrong field.")
    limit: float | None = Field(None, description="The limit that was exceeded.")
    errors: list[FieldProblem] | None = Field(None, description="Every wrong field.")


class Problem(Exception):
    """A request that is refused, as its answer."""

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        *,
        field: str = "",
        limit: float | None = None,
        errors: Sequence[Mapping[str, Any]] = (),
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(status, code, detail)
        self.status = status
        self.code = code
        self.detail = detail
        self.field = field
        self.limit = limit
        self.errors = errors
        self.headers = headers or {}


def as_response(problem: Problem) -> HttpResponse:
    """Return the answer of a problem."""
    body: dict[str, Any] = {
        "type": f"urn:fairshift:problem:{problem.code}",
        "title": HTTPStatus(problem.status).phrase,
        "status": problem.status,
        "detail": problem.detail,
        "code": problem.code,
    }
    if problem.field:
        body["field"] = problem.field
    if problem.limit is not None:
        body["limit"] = problem.limit
    if problem.errors:
        body["errors"] = list(problem.errors[:ERRORS_LIMIT])
    return HttpResponse(
        json.dumps(body),
        status=problem.status,
        content_type=MEDIA_TYPE,
        headers={"Cache-Control": "no-store", **problem.headers},
    )


def not_found() -> Problem:
    """Return the answer for a row that does not exist, and for one of another owner: the same."""
    return Problem(404, "not_found", "There is nothing at this address.")
