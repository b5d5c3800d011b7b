"""Polls of a live part: the answer 304 without reading, if nothing has changed since the last one.

The ETag of an answer is the hash of its body and the seal of its stamp. A stamp says for whom and
in which form the part was read, and what had changed until then. A poll whose ETag has the present
stamp is answered at once. A seal differs from answer to answer: if it did not, a visitor would see
from it when something happens at other owners.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import time
from collections.abc import Iterator
from typing import Final

from django.http import HttpRequest, HttpResponse, HttpResponseNotModified
from django.utils import timezone
from django.utils.crypto import constant_time_compare, salted_hmac
from django.utils.http import quote_etag
from django.utils.translation import get_language

from jobs.models.access import Access
from jobs.system.changes import changes

PART: Final = "X-Fairshift-Part"
"""The header of a request that renews the live part of a page."""
STAMP_SECONDS: Final = 15
"""How long a stamp is good. What changes by time alone, such as an age, may be as late as that."""

_ETAG: Final = re.compile(r'"([0-9a-f]{32})(?:\.([0-9a-f]{16})\.([0-9a-f]{32}))?"')


def stamp_of(request: HttpRequest, access: Access) -> str | None:
    """Return the stamp of an answer to this request now; None if it is no poll, or cannot be said.

    Take it before the rows are read, and with the barrier lifted.
    """
    if PART not in request.headers:
        return None
    changed = changes()
    if changed is None:
        return None
    scopes = sorted((owner, sorted(had)) for owner, had in access.by_owner.items())
    # Those of a superuser are all: reading them would take a statement.
    permissions = [] if access.sees_all else sorted(access.actor.get_all_permissions())
    facts = (
        *(access.actor.pk, access.actor.is_staff, sorted(access.everywhere), scopes, permissions),
        *(request.get_full_path(), get_language(), timezone.get_current_timezone_name()),
        *(int(time.time() // STAMP_SECONDS), changed),
    )
    return repr(facts)


def unchanged(request: HttpRequest, stamp: str | None) -> HttpResponse | None:
    """Return the answer 304 if the poll has an ETag of this stamp, and None otherwise."""
    if stamp is None:
        return None
    for digest, nonce, seal in _given(request):
        if seal and constant_time_compare(seal, _seal(digest, nonce, stamp)):
            return _not_modified(digest, stamp)
    return None


def answer_to(request: HttpRequest, text: str, stamp: str | None) -> HttpResponse:
    """Return the live part, or the answer 304 if the poll has the same text."""
    digest = hashlib.sha256(text.encode()).hexdigest()[:32]
    if any(had == digest for had, _nonce, _seal in _given(request)):
        return _not_modified(digest, stamp)
    return HttpResponse(text, headers={"ETag": _etag(digest, stamp)})


def _not_modified(digest: str, stamp: str | None) -> HttpResponse:
    return HttpResponseNotModified(headers={"ETag": _etag(digest, stamp)})


def _given(request: HttpRequest) -> Iterator[tuple[str, str, str]]:
    """Return the hash, the nonce and the seal of each ETag that the poll has."""
    for found in _ETAG.finditer(request.META.get("HTTP_IF_NONE_MATCH", "")):
        yield found[1], found[2] or "", found[3] or ""


def _etag(digest: str, stamp: str | None) -> str:
    if stamp is None:
        return quote_etag(digest)
    nonce = secrets.token_hex(8)
    return quote_etag(f"{digest}.{nonce}.{_seal(digest, nonce, stamp)}")


def _seal(digest: str, nonce: str, stamp: str) -> str:
    made = salted_hmac(__name__, f"{digest} {nonce} {stamp}", algorithm="sha256")
    return made.hexdigest()[:32]
