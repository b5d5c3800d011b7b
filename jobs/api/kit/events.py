"""Server-Sent Events: what is new of a row is sent, until the last event or the limit of time."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from typing import Annotated, Any, Final

from django.http import HttpRequest, StreamingHttpResponse
from ninja import Header
from pydantic import Field

from jobs.actions.texts import Text
from jobs.api.kit.streams import Stream, streamed
from jobs.core.conf import setting

POLL_SECONDS: Final = 1.0
HEARTBEAT_SECONDS: Final = 10.0
"""Time without an event after which a comment is sent, so that proxies keep the connection."""
RETRY_MILLISECONDS: Final = 3_000
"""Time after which a client connects again."""
EVENT_STREAM: Final = "text/event-stream"

LastEventId = Annotated[
    Annotated[Text, Field(max_length=100)] | None,
    Header(alias="Last-Event-ID", description="The `id` of the last event that you have."),
]


def documented(name: str, description: str) -> dict[str, Any]:
    """Return the `openapi_extra` of an operation that sends events of a name, and one `end`."""
    # Before OpenAPI 3.2 the schema of a stream of events is that of one event.
    event = {
        "type": "object",
        "required": ["data"],
        "properties": {
            "id": {"type": "string"},
            "event": {"enum": [name, "end"]},
            "data": {"type": "string", "contentMediaType": "application/json"},
        },
    }
    sent = {"description": description, "content": {EVENT_STREAM: {"schema": event}}}
    ended = {"description": "You have the event `end` already: do not connect again."}
    return {"responses": {200: sent, 204: ended}}


def event(name: str, *, place: object, data: Any) -> bytes:
    """Return an event as it is sent; a client that connects again names its place."""
    return f"id: {place}\nevent: {name}\ndata: {json.dumps(data)}\n\n".encode()


def watched(
    request: HttpRequest, news: Callable[[Stream], Iterator[bytes | None]]
) -> StreamingHttpResponse:
    """Return an answer that sends events while they come, and heartbeats between them.

    `news(stream)` yields each event, and None when there is none for now; it returns after the
    last one.
    """
    return streamed(request, lambda stream: _parts(news(stream)), content_type=EVENT_STREAM)


def _parts(news: Iterator[bytes | None]) -> Iterator[bytes]:
    ends_at = time.monotonic() + setting("API_STREAM_SECONDS")
    yield f"retry: {RETRY_MILLISECONDS}\n\n".encode()
    quiet_since = time.monotonic()
    for part in news:
        if part is not None:
            quiet_since = time.monotonic()
            yield part
            continue
        if time.monotonic() + POLL_SECONDS > ends_at:
            return
        if time.monotonic() - quiet_since >= HEARTBEAT_SECONDS:
            quiet_since = time.monotonic()
            yield b": still here\n\n"
        time.sleep(POLL_SECONDS)
