"""Read the body of a request: within the limit of bytes, and as strict JSON."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, UnreadablePostError
from ninja.parser import Parser

from jobs.api.kit.problems import Problem
from jobs.core.conf import setting
from jobs.core.strict_json import parse


class StrictParser(Parser):
    """Reads bodies for every operation that has one."""

    def parse_body(self, request: HttpRequest) -> Any:
        """Return the value of the body; raise Problem or JsonError."""
        return parse(_content(request), max_depth=setting("API_MAX_DEPTH"))


def _content(request: HttpRequest) -> bytes:
    """Return the bytes of the body, and read no more than one beyond the limit."""
    limit: int = setting("API_MAX_BODY_BYTES")
    try:
        # Not request.body: Django's limit of 2.5 MB is for forms.
        data = request.read(limit + 1)
    except UnreadablePostError:
        raise Problem(400, "incomplete_body", "The connection ended before the body.") from None
    if len(data) > limit:
        raise too_large(limit)
    return data


def too_large(limit: int) -> Problem:
    """Return the answer to a body over the limit of bytes."""
    return Problem(413, "body_too_large", f"The body has more than {limit:,} bytes.", limit=limit)
