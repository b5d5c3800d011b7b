"""Windows: the actions on them."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse

from jobs.actions import Done
from jobs.actions.windows import WINDOWS
from jobs.api.kit.actions import Answer, serve
from jobs.api.windows.reading import etag_of_window
from jobs.api.windows.router import router
from jobs.api.windows.schemas import DecisionDetails
from jobs.core import barrier


def _decided(_request: HttpRequest, _response: HttpResponse, done: Done) -> DecisionDetails:
    with barrier.lifted():
        done.value.refresh_from_db()
    return DecisionDetails.of(done.value)


serve(
    router,
    WINDOWS,
    "{int:window_id}",
    Answer(schema=DecisionDetails, of=_decided, status=201),
    etag_of=lambda window, _request: etag_of_window(window),
)
