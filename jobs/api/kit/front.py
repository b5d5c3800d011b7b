"""What each request passes before and after its operation: media types, size, the barrier."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Final

from django.http import Http404, HttpRequest
from django.http.response import HttpResponseBase
from django.urls import URLPattern
from django.utils.cache import patch_cache_control
from django.utils.translation import override
from django.views.decorators.csrf import csrf_exempt

from jobs.api.kit.bodies import WITH_BODY, is_chunked, too_large
from jobs.api.kit.problems import MEDIA_TYPE, Problem, as_response, not_found
from jobs.core import barrier
from jobs.core.conf import setting

SENT: Final = (
    *("application/json", MEDIA_TYPE, "application/x-ndjson", "text/csv"),
    *("text/event-stream", "text/calendar", "text/html"),
)
"""Media types that operations send; a request accepts one of them."""
LANGUAGE: Final = "en"
"""The language of all texts of the API."""

View = Callable[..., HttpResponseBase]


def fronted(pattern: URLPattern) -> URLPattern:
    """Return the address of an operation, whose requests pass the front."""
    view: Any = _front(pattern.callback)
    # `lean` calls it past the middleware of pages.
    view.is_operation = True
    return URLPattern(pattern.pattern, view, pattern.default_args, pattern.name)


def _front(view: View) -> View:
    @wraps(view)
    def run(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if request.method != "HEAD":
            return in_english(answer(request, *args, **kwargs))
        request.method = "GET"
        return in_english(_without_body(answer(request, *args, **kwargs)))

    def answer(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        try:
            _refuse_request(request)
            # A program reads it: the same texts for every Accept-Language and LANGUAGE_CODE.
            with override(LANGUAGE):
                response = view(request, *args, **kwargs)
        except Problem as problem:
            return as_response(problem)
        except Http404:
            return as_response(not_found())
        finally:
            # Whatever happened: the connection is used again for other owners.
            barrier.lower()
        if response.status_code == 405 and response.headers.get("Content-Type") != MEDIA_TYPE:
            return as_response(_not_allowed(response))
        if "Cache-Control" not in response.headers:
            patch_cache_control(response, private=True, no_cache=True)
        return response

    return run


@csrf_exempt
def unknown_address(request: HttpRequest, *_args: Any, **_kwargs: Any) -> HttpResponseBase:
    """Answer an address that no operation has, as one whose row does not exist."""
    return in_english(as_response(not_found()))


def in_english(response: HttpResponseBase) -> HttpResponseBase:
    """Name the language of an answer; else Django would name that of `Accept-Language`."""
    response.headers["Content-Language"] = LANGUAGE
    return response


def _refuse_request(request: HttpRequest) -> None:
    if not any(request.accepts(media_type) for media_type in SENT):
        raise Problem(406, "not_acceptable", f"Answers are {', '.join(SENT)}.")
    if request.method not in WITH_BODY:
        return
    limit: int = setting("API_MAX_BODY_BYTES")
    length = request.META.get("CONTENT_LENGTH") or "0"
    if length.isdecimal() and int(length[:20]) > limit:
        raise too_large(limit)
    has_body = length != "0" or is_chunked(request)
    if has_body and request.content_type != "application/json":
        raise Problem(415, "unsupported_media_type", "Send the body as application/json.")
    if request.headers.get("Content-Encoding", "identity") != "identity":
        raise Problem(415, "unsupported_media_type", "Send the body without Content-Encoding.")


def _not_allowed(response: HttpResponseBase) -> Problem:
    allowed = response.headers.get("Allow", "").replace("GET", "GET, HEAD")
    return Problem(
        405, "method_not_allowed", f"This address takes {allowed}.", headers={"Allow": allowed}
    )


def _without_body(response: HttpResponseBase) -> HttpResponseBase:
    """Return the answer to HEAD: that to GET, with its headers alone."""
    whole: Any = response
    if response.streaming:
        # The server closes the parts, which gives back the place of the stream.
        whole.streaming_content = ()
    else:
        response.headers["Content-Length"] = str(len(whole.content))
        whole.content = b""
    return response
