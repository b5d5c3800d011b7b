"""Who may scrape: a program with a token of the installation, or any at one of some addresses."""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass
from http import HTTPStatus
from ipaddress import ip_address, ip_network
from typing import Final

from django.db import Error, connection
from django.http import HttpRequest

from jobs.core import barrier
from jobs.core.conf import setting
from jobs.models.access import access_of
from jobs.owners.tokens import use_token

SCHEME: Final = "Bearer "
GOOD_SECONDS: Final = 600.0
"""How long a token that was good stands in for PostgreSQL while that is away."""

_good: Final[dict[bytes, float]] = {}
"""When the tokens that were good in this process were so, by digest, in monotonic seconds."""


@dataclass(frozen=True, slots=True)
class Admission:
    """Whether a request may scrape (OK), or the status of its refusal."""

    status: HTTPStatus = HTTPStatus.OK
    is_database_away: bool = False
    """Whether PostgreSQL was found to be away."""


def admission_of(request: HttpRequest) -> Admission:
    """Decide on a request. A proxy's headers do not count: any client can write them."""
    if _is_listed(request.META.get("REMOTE_ADDR", "")):
        return Admission()
    given = request.META.get("HTTP_AUTHORIZATION", "")
    if not given.startswith(SCHEME):
        return Admission(HTTPStatus.UNAUTHORIZED)
    return _of_token(given.removeprefix(SCHEME).strip())


def _is_listed(address: str) -> bool:
    try:
        found = ip_address(address)
    except ValueError:
        # A server on a unix socket knows no address.
        return False
    found = getattr(found, "ipv4_mapped", None) or found
    return any(found in ip_network(network) for network in setting("METRICS_ADDRESSES"))


def _of_token(secret: str) -> Admission:
    digest = hashlib.sha256(secret.encode("utf-8", "replace")).digest()
    try:
        token = use_token(secret)
    except Error:
        connection.close()
        was_good = time.monotonic() - _good.get(digest, -GOOD_SECONDS) < GOOD_SECONDS
        status = HTTPStatus.OK if was_good else HTTPStatus.SERVICE_UNAVAILABLE
        return Admission(status, is_database_away=True)
    finally:
        barrier.lower()
    _good.pop(digest, None)
    if token is None:
        return Admission(HTTPStatus.UNAUTHORIZED)
    if not access_of(token).sees_all:
        return Admission(HTTPStatus.FORBIDDEN)
    _good[digest] = time.monotonic()
    return Admission()
