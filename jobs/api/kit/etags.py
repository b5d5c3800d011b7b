"""ETags: a caller reads a row again only if it has changed, and changes only what it has read."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any, Final

from django.http import HttpRequest, HttpResponse
from django.utils.cache import get_conditional_response
from django.utils.http import parse_etags, quote_etag

from jobs.api.kit.problems import Problem

IF_MATCH: Final[dict[str, Any]] = {
    "parameters": [
        {
            "in": "header",
            "name": "If-Match",
            "required": True,
            "schema": {"type": "string"},
            "description": "The ETag of the version that is changed; `*`: any version.",
        }
    ]
}
"""For the document: `openapi_extra` of an operation that refuses a request without If-Match."""

IF_MATCH_OPTIONAL: Final[dict[str, Any]] = {
    "parameters": [IF_MATCH["parameters"][0] | {"required": False}]
}
"""For the document: `openapi_extra` of an operation that compares If-Match if it is sent."""


def etag_of(*facts: Any) -> str:
    """Return the ETag of a row, from the facts that change with it."""
    return quote_etag(hashlib.sha256(repr(facts).encode()).hexdigest()[:32])


def unchanged(request: HttpRequest, response: HttpResponse, etag: str) -> HttpResponse | None:
    """Set a row's ETag on its answer; return the answer 304 if the caller has this row already."""
    response["ETag"] = etag
    found: HttpResponse | None = get_conditional_response(request, etag=etag)
    return found if found is not None and found.status_code == 304 else None


def refuse_stale(request: HttpRequest, etag: str) -> None:
    """Raise Problem if the caller's If-Match names another version: 412, or 428 without one.

    `*` matches every version. Call it in the transaction that has locked the row.
    """
    is_version = version_check(request, lambda _row, _request: etag, is_required=True)
    if is_version is not None and not is_version(None):
        raise stale()


def version_check(
    request: HttpRequest,
    etag_of: Callable[[Any, HttpRequest], str] | None,
    *,
    is_required: bool = False,
) -> Callable[[Any], bool] | None:
    """Return what says whether a row is the version that If-Match names; None: it is not sent."""
    given = request.headers.get("If-Match")
    if given is None and is_required:
        raise Problem(
            428,
            "precondition_required",
            "Send If-Match with the ETag of the version that you change.",
            field="If-Match",
        )
    if given is None or etag_of is None:
        return None
    wanted = set(parse_etags(given))
    return lambda row: bool({"*", etag_of(row, request)} & wanted)


def stale() -> Problem:
    """Return the answer to a change of a row that has changed since the caller read it."""
    return Problem(
        412,
        "precondition_failed",
        "This has changed since you read it. Read it again.",
        field="If-Match",
    )
