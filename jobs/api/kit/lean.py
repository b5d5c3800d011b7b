"""A short way for requests with a token: past the middleware that serves pages and sessions.

A request with `Authorization` is never authenticated by a session (`callers`), so it needs neither
session, user, messages, language nor CSRF token. In MIDDLEWARE it follows SecurityMiddleware. Its
answers have a stricter policy than pages: no browser loads or frames anything by them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import Resolver404, resolve

from jobs.owners.tokens import MARK

BEARER: Final = f"Bearer {MARK}"
POLICY: Final = {
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "X-Frame-Options": "DENY",
}

Respond = Callable[[HttpRequest], HttpResponseBase]


class TokenRequests:
    """Middleware that calls an operation of the API directly for a request with a token."""

    def __init__(self, get_response: Respond) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if not request.META.get("HTTP_AUTHORIZATION", "").startswith(BEARER):
            return self.get_response(request)
        try:
            match = resolve(request.path_info)
        except Resolver404:
            return self.get_response(request)
        if not getattr(match.func, "is_operation", False):
            return self.get_response(request)
        # It raises DisallowedHost, as Django's CommonMiddleware does.
        request.get_host()
        request.resolver_match = match
        response = match.func(request, *match.args, **match.kwargs)
        for name, value in POLICY.items():
            response.headers.setdefault(name, value)
        if not response.streaming:
            response.headers.setdefault("Content-Length", str(len(response.content)))
        return response
