"""The progress of one submission as a stream of Server-Sent Events."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase

from jobs.api.kit.etags import etag_of
from jobs.api.kit.events import LastEventId, documented, event, watched
from jobs.api.kit.streams import Stream
from jobs.api.submissions.reading import READS, find_submission
from jobs.api.submissions.router import router
from jobs.api.submissions.schemas import RunProgress
from jobs.models import Submission
from jobs.models.submission import Progress

DOCUMENTED: Final = documented(
    "progress",
    "Events `progress` with each change, and one `end` when every run has ended; "
    "`data` has the fields of `progress` of the submission.",
)


@router.get(
    "/{int:submission_id}/events",
    auth=READS,
    operation_id="watch_submission",
    openapi_extra=DOCUMENTED,
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
    return watched(request, lambda stream: _news(stream, submission, last_event_id or ""))


def _news(stream: Stream, submission: Submission, sent: str) -> Iterator[bytes | None]:
    """Yield an event for each change that the client does not have."""
    while True:
        progress = stream.read(lambda: submission.progress)
        stream.release()
        if _id_of(progress) != sent or progress.is_done:
            sent = _id_of(progress)
            name = "end" if progress.is_done else "progress"
            yield event(name, place=sent, data=RunProgress.of(progress).model_dump(mode="json"))
        if progress.is_done:
            return
        yield None


def _id_of(progress: Progress) -> str:
    """Return the id of an event: the same for the same counts, in every process."""
    return etag_of(sorted(progress.counts.items()), progress.is_done).strip('"')
