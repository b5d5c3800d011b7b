"""The trace that a request, or a run, continues: W3C Trace Context, level 1, version 00."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from fleet.logs import bind

_FORM: Final = re.compile(r"00-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")
_current: ContextVar[str] = ContextVar("fairshift_traceparent", default="")


def trace_id_of(traceparent: object) -> str:
    """Return the trace of such a header; empty if it is absent or invalid."""
    found = _FORM.fullmatch(traceparent) if isinstance(traceparent, str) else None
    return found[1] if found else ""


def current_traceparent() -> str:
    """Return the header that continues the trace of this block; empty outside one."""
    return _current.get()


@contextmanager
def continuing(traceparent: object) -> Iterator[None]:
    """Continue a trace in the block, and log its `trace_id`; an invalid header is ignored."""
    trace_id = trace_id_of(traceparent)
    if not trace_id:
        yield
        return
    slot = _current.set(str(traceparent))
    try:
        with bind(trace_id=trace_id):
            yield
    finally:
        _current.reset(slot)
