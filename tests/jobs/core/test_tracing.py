"""jobs/core/tracing.py: a request has a trace, and what it submits continues it."""

from typing import Any

import pytest
from django.http import HttpResponse
from django.test import RequestFactory
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.trace import SpanContext, TraceFlags, TraceState

from fleet import bound_facts, trace_id_of
from jobs import submit
from jobs.core.tracing import TraceRequests, trace_headers
from jobs.models import Owner
from tests.tasks import add

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
GIVEN = f"00-{TRACE}-00f067aa0ba902b7-01"


def seen(**headers: str) -> dict[str, Any]:
    """Return the headers of the trace, and the bound facts, within a request."""
    found: dict[str, Any] = {}

    def view(_request: object) -> HttpResponse:
        found.update(trace_headers(), facts=bound_facts())
        return HttpResponse()

    TraceRequests(view)(RequestFactory().get("/", headers=headers))
    return found


def test_a_request_continues_the_trace_that_it_names() -> None:
    found = seen(traceparent=GIVEN)
    assert (found["traceparent"], found["facts"]["trace_id"]) == (GIVEN, TRACE)
    assert trace_headers() == {}


@pytest.mark.parametrize("header", ["", "nonsense", GIVEN.replace(TRACE, "0" * 32)])
def test_a_request_without_a_valid_one_has_a_new_trace(header: str) -> None:
    """Unsampled: nobody asked to record it."""
    first, second = seen(traceparent=header), seen(traceparent=header)
    for found in (first, second):
        assert trace_id_of(found["traceparent"]) == found["facts"]["trace_id"] != ""
        assert found["traceparent"].endswith("-00")
    assert first["traceparent"] != second["traceparent"]


def test_the_current_span_wins() -> None:
    """OpenTelemetry's middleware has opened it for this request."""
    with TracerProvider().get_tracer("tests").start_as_current_span("request") as span:
        found = seen(traceparent=GIVEN)
    context = span.get_span_context()
    assert found["facts"]["trace_id"] == f"{context.trace_id:032x}" != TRACE


def test_a_long_tracestate_is_left_out() -> None:
    """The trace itself is continued."""

    def headers(value: str) -> dict[str, str]:
        state = TraceState([("vendor", value), ("other", value)])
        context = SpanContext(7, 8, is_remote=True, trace_flags=TraceFlags(1), trace_state=state)
        with trace.use_span(trace.NonRecordingSpan(context)):
            return trace_headers()

    assert headers("x")["tracestate"] == "vendor=x,other=x"
    assert list(headers("x" * 250)) == ["traceparent"]


def test_a_submit_stores_the_trace_in_the_row(acme: Owner) -> None:
    """So the worker has it, however late it starts; outside a request there is none."""

    def view(_request: object) -> HttpResponse:
        run = submit(add, 1, 2, owner=acme, ignore_result=False)
        assert run.options == {"ignore_result": False, "traceparent": GIVEN}
        return HttpResponse()

    TraceRequests(view)(RequestFactory().get("/", headers={"traceparent": GIVEN}))
    assert submit(add, 1, 2, owner=acme).options == {}
