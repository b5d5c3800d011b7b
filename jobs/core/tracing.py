"""The trace of a request, which its runs continue: W3C Trace Context, level 1.

With OpenTelemetry (the extra `otel`) it is that of the current span. Without it, it is the one that
a request's `traceparent` names, or a new one, so that the log lines of a request and of its runs
have one `trace_id`.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Any, Final

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.http import HttpRequest

from fleet import continuing, current_traceparent, trace_id_of

try:
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    _propagator: Any = TraceContextTextMapPropagator()
except ImportError:  # the extra `otel` is not installed
    _propagator = None

HEADERS: Final = ("traceparent", "tracestate")
STATE_LIMIT: Final = 512
"""Characters of a `tracestate`; a longer one is left out, as the standard allows."""


def trace_headers() -> dict[str, str]:
    """Return the headers that continue the current trace in another process; empty without one."""
    found: dict[str, str] = {}
    if _propagator is not None:
        _propagator.inject(found)
    if not found:
        found["traceparent"] = current_traceparent()
    return {name: found[name] for name in HEADERS if 0 < len(found.get(name, "")) <= STATE_LIMIT}


class TraceRequests:
    """Middleware that gives each request a trace, and its log lines a `trace_id`.

    It follows OpenTelemetry's own middleware, which may have opened a span.
    """

    sync_capable = True
    async_capable = True

    def __init__(self, get_response: Callable[[HttpRequest], Any]) -> None:
        self.get_response = get_response
        self.is_async = iscoroutinefunction(get_response)
        if self.is_async:
            markcoroutinefunction(self)

    def __call__(self, request: HttpRequest) -> Any:
        if self.is_async:
            return self._answer_async(request)
        with continuing(_of_request(request)):
            return self.get_response(request)

    async def _answer_async(self, request: HttpRequest) -> Any:
        with continuing(_of_request(request)):
            return await self.get_response(request)


def _of_request(request: HttpRequest) -> str:
    """Return the trace of the current span, else the request's own, else a new one, unsampled."""
    if current := trace_headers().get("traceparent"):
        return current
    asked: str = request.META.get("HTTP_TRACEPARENT", "")
    return asked if trace_id_of(asked) else f"00-{secrets.token_hex(16)}-{secrets.token_hex(8)}-00"
