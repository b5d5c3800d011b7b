"""Owners: create, and the actions on them."""

from __future__ import annotations

from typing import Final

from jobs.actions.owners import OWNERS
from jobs.api.kit.actions import of_row, serve, serve_creation
from jobs.api.owners.router import router
from jobs.api.owners.schemas import OwnerDetails, etag_of_owner

ANSWER: Final = of_row(OwnerDetails, etag_of_owner)
serve_creation(router, OWNERS, ANSWER, key="slug")
serve(router, OWNERS, "{slug}", ANSWER, etag_of=lambda owner, _request: etag_of_owner(owner))
