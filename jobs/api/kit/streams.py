"""Answers that are sent in parts: each part is read behind the barrier of the request.

The barrier of a request is lowered when its view returns, before the first part is read. A stream
raises it again for each read, looks whether the caller still has its scopes, and may give the
connection back to others until the next read. A process sends a bounded number of streams.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeVar

from django.contrib.auth import get_user_model
from django.db import connection
from django.http import HttpRequest, StreamingHttpResponse

from jobs.api.kit.callers import caller
from jobs.api.kit.problems import Problem
from jobs.core import barrier
from jobs.core.conf import setting
from jobs.models import ApiToken
from jobs.models.access import Access, access_of

AGAIN_SECONDS: Final = 5
"""Retry-After when the process sends as many streams as it may."""
TRUSTED_SECONDS: Final = 1.0
"""Seconds between two checks whether the caller of a stream still has its scopes."""

Found = TypeVar("Found")


class Revoked(Exception):
    """The caller's token was revoked or has expired, or its user lost a role, during the answer."""


class Stream:
    """The reads of one answer that is sent in parts. Not thread-safe."""

    def __init__(self, request: HttpRequest) -> None:
        self._access = caller(request)
        self._owners = barrier.owners_of_request()
        self._trusted_until = time.monotonic() + TRUSTED_SECONDS

    def read(self, query: Callable[[], Found]) -> Found:
        """Return what a query finds behind the request's barrier; it must not be lazy.

        Raises Revoked for a caller that has lost scopes, and whatever the query raises.
        """
        with barrier.raised_again(self._owners):
            self._refuse_revoked()
            return query()

    def release(self) -> None:
        """Give the connection back until the next read."""
        if not connection.in_atomic_block:
            connection.close()

    def _refuse_revoked(self) -> None:
        if time.monotonic() < self._trusted_until:
            return
        if not _has_its_scopes(self._access):
            raise Revoked
        self._trusted_until = time.monotonic() + TRUSTED_SECONDS


def _has_its_scopes(access: Access) -> bool:
    """Say whether a token is still usable, or a user still active, with the same scopes."""
    rows: Any = get_user_model()._default_manager.all()
    if isinstance(access.actor, ApiToken):
        rows = ApiToken.objects.usable()
    # Users have no owner, and are not readable behind the barrier.
    with barrier.lifted():
        found = rows.filter(pk=access.actor.pk).first()
        now = None if found is None else access_of(found)
    return now is not None and (now.everywhere, now.by_owner) == (
        access.everywhere,
        access.by_owner,
    )


class _Open:
    """The streams that this process sends now."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.count = 0

    def take(self) -> None:
        """Count one more; raise Problem if there are as many as there may be."""
        most: int = setting("API_MAX_STREAMS")
        with self._lock:
            if self.count >= most:
                raise Problem(
                    503,
                    "too_many_streams",
                    f"This process sends {most:,} streams already. Repeat the request.",
                    limit=most,
                    headers={"Retry-After": str(AGAIN_SECONDS)},
                )
            self.count += 1

    def give_back(self) -> None:
        with self._lock:
            self.count -= 1


open_streams: Final = _Open()


class _Parts:
    """The parts of an answer, which give back its place once: at their end, or when it is closed.

    A generator that was never begun would not run its `finally`.
    """

    def __init__(self, parts: Iterator[bytes]) -> None:
        self._parts = parts
        self._is_open = True

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        try:
            return next(self._parts)
        except Revoked:
            self.close()
            raise StopIteration from None
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """End the answer; the server calls it also for a caller that has gone."""
        if not self._is_open:
            return
        self._is_open = False
        open_streams.give_back()
        close = getattr(self._parts, "close", None)
        if close is not None:
            close()


def streamed(
    request: HttpRequest, parts: Callable[[Stream], Iterator[bytes]], *, content_type: str
) -> StreamingHttpResponse:
    """Return an answer whose parts are made while it is sent, by `parts(stream)`.

    The parts read by `stream.read(query)` only. Raises Problem, with Retry-After, when the process
    sends as many streams as it may. A caller that has lost scopes gets no further part.
    """
    stream = Stream(request)
    open_streams.take()
    answer = StreamingHttpResponse(_Parts(parts(stream)), content_type=content_type)
    # For proxies: a part that waits in a buffer arrives late.
    answer["X-Accel-Buffering"] = "no"
    answer["Cache-Control"] = "private, no-store"
    return answer


def downloaded(
    request: HttpRequest,
    parts: Callable[[Stream], Iterator[bytes]],
    *,
    content_type: str,
    name: str,
) -> StreamingHttpResponse:
    """Return the parts of a file as `streamed` does; of a whole file, or the connection breaks."""

    def whole(stream: Stream) -> Iterator[bytes]:
        try:
            yield from parts(stream)
        except Revoked as error:
            # A stream would end here, and the caller would take a part for the whole.
            raise ConnectionAbortedError("the caller lost its scopes during a download") from error

    answer = streamed(request, whole, content_type=content_type)
    answer["Content-Disposition"] = f'attachment; filename="{name}"'
    return answer
