"""The progress of one submission as a stream of Server-Sent Events."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Annotated, Any, Final

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from ninja import Header
from pydantic import Field

from jobs.actions.texts import Text
from jobs.api.kit.etags import etag_of
from jobs.api.kit.streams import Stream, streamed
from jobs.api.submissions.reading import READS, find_submission
from jobs.api.submissions.router import router
from jobs.api.submissions.schemas import RunProgress
from jobs.core.conf import setting
from jobs.models import Submission
from jobs.models.submission import Progress

POLL_SECONDS: Final = 1.0
HEARTBEAT_SECONDS: Final = 10.0
"""Time without an event after which a comment is sent, so that proxies keep the connection."""
RETRY_MILLISECONDS: Final = 3_000
"""Time after which a client connects again."""
EVENT_STREAM: Final = "text/event-stream"

EventId = Annotated[Text, Field(max_length=100)]
LastEventId = Annotated[
    EventId | None,
    Header(alias="Last-Event-ID", description="The `id` of the last event that you have."),
]
# Before OpenAPI 3.2 the schema of a stream of events is that of one event.
_EVENT: Final[dict[str, Any]] = {
    "type": "object",
    "required": ["data"],
    "properties": {
        "id": {"type": "string"},
        "event": {"enum": ["progress", "end"]},
        "data": {"type": "string", "contentMediaType": "application/json"},
    },
}
_DOCUMENTED: Final[dict[str, Any]] = {
    "responses": {
        200: {
            "description": (
                "Events `progress` with each change, and one `end` when every run has ended; "
                "`data` has the fields of `progress` of the submission."
            ),
            "content": {EVENT_STREAM: {"schema": _EVENT}},
        },
        204: {"description": "You have the event `end` already: do not connect again."},
    }
}


@router.get(
    "/{int:submission_id}/events",
    auth=READS,
    operation_id="watch_submission",
    openapi_extra=_DOCUMENTED,
)
def watch_submission(
    request: HttpRequest, submission_id: int, last_event_id: LastEventId = None
) -> HttpResponseBase:
    """Send the progress of a submission until every run has ended, as Server-Sent Events.

    After `FAIRSHIFT_API_STREAM_SECONDS` the stream closes without `end`. Then connect again with
    `Last-Event-ID`, as browsers do automatically.
    """
    submission = find_submission(request, submission_id)
    progress = submission.progress
    if progress.is_done and last_event_id == _id_of(progress):
        return HttpResponse(status=204)
    return streamed(
        request,
        lambda stream: _events(stream, submission, last_event_id or ""),
        content_type=EVENT_STREAM,
    )


def _events(stream: Stream, submission: Submission, sent: str) -> Iterator[bytes]:
    """Yield an event for each change that the client does not have, and heartbeats."""
    ends_at = time.monotonic() + setting("API_STREAM_SECONDS")
    yield f"retry: {RETRY_MILLISECONDS}\n\n".encode()
    quiet_since = time.monotonic()
    while True:
        progress = stream.read(lambda: submission.progress)
        stream.release()
        if _id_of(progress) != sent or progress.is_done:
            sent, quiet_since = _id_of(progress), time.monotonic()
            yield _event(progress)
        if progress.is_done or time.monotonic() + POLL_SECONDS > ends_at:
            return
        if time.monotonic() - quiet_since >= HEARTBEAT_SECONDS:
            quiet_since = time.monotonic()
            yield b": still here\n\n"
        time.sleep(POLL_SECONDS)


def _event(progress: Progress) -> bytes:
    name = "end" if progress.is_done else "progress"
    data = json.dumps(RunProgress.of(progress).model_dump(mode="json"))
    return f"id: {_id_of(progress)}\nevent: {name}\ndata: {data}\n\n".encode()


def _id_of(progress: Progress) -> str:
    """Return the id of an event: the same for the same counts, in every process."""
    return etag_of(sorted(progress.counts.items()), progress.is_done).strip('"')
