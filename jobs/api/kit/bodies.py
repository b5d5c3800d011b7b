"""Read the body of a request: within the limit of bytes, and as strict JSON. Empty counts as {}."""

from __future__ import annotations

from typing import Any, Final

from django.http import HttpRequest
from ninja.parser import Parser

from jobs.api.kit.problems import Problem
from jobs.core.conf import setting
from jobs.core.strict_json import parse

WITH_BODY: Final = frozenset({"POST", "PUT", "PATCH"})
"""Methods whose requests have a body."""


class StrictParser(Parser):
    """Reads the JSON of every operation that has a body."""

    def parse_body(self, request: HttpRequest) -> Any:
        """Return the value of the body; raise JsonError, which django-ninja hides in its own."""
        return parse(request.body, max_depth=setting("API_MAX_DEPTH"))


def is_chunked(request: HttpRequest) -> bool:
    """Say whether a body comes in chunks, without a length; many HTTP clients send it so."""
    return "chunked" in request.headers.get("Transfer-Encoding", "").lower()


def read_body(request: HttpRequest) -> None:
    """Read the body of a caller that is known; raise Problem if it is over the limit."""
    limit: int = setting("API_MAX_BODY_BYTES")
    source = _source(request)
    try:
        data = source.read(limit + 1)
    # Each server has errors of its own, for a connection that ended and for malformed chunks.
    except Exception:
        detail = "The connection ended before the body, or a chunk is malformed."
        raise Problem(400, "incomplete_body", detail) from None
    if len(data) > limit:
        raise too_large(limit)
    # What request.body returns; it would refuse more than 2.5 MB, a limit that is for forms.
    # Empty: a cancel needs no field, and for others the error names the missing field.
    request._body = data or b"{}"


def _source(request: HttpRequest) -> Any:
    """Return what reads the body: of chunks the server's stream, as Django takes them for none."""
    if not is_chunked(request):
        return request
    if not request.META.get("wsgi.input_terminated"):
        raise Problem(411, "length_required", "Send the body with Content-Length.")
    return request.META["wsgi.input"]


def too_large(limit: int) -> Problem:
    """Return the answer to a body over the limit of bytes."""
    return Problem(413, "body_too_large", f"The body has more than {limit:,} bytes.", limit=limit)
