"""Owners: create, and the actions on them."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse

from jobs.actions import Done
from jobs.actions.owners import OWNERS
from jobs.api.kit.actions import Answer, serve, serve_creation
from jobs.api.owners.router import router
from jobs.api.owners.schemas import OwnerDetails, etag_of_owner


def _shown(_request: HttpRequest, response: HttpResponse, done: Done) -> OwnerDetails:
    response["ETag"] = etag_of_owner(done.row)
    return OwnerDetails.of(done.row)


ANSWER = Answer(schema=OwnerDetails, of=_shown)
serve_creation(router, OWNERS, ANSWER, key="slug")
serve(router, OWNERS, "{slug}", ANSWER, etag_of=lambda owner, _request: etag_of_owner(owner))
