"""The HTTP request task: one request to a public https host, or to one that is allow-listed."""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Iterable
from http.client import HTTPException
from json import dumps
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, Field, JsonValue
from urllib3.exceptions import HTTPError
from urllib3.exceptions import TimeoutError as HttpTimeoutError

from jobs.catalog.builtin import wire
from jobs.catalog.builtin.addresses import is_address, is_allowed, is_odd_address, why_not_public
from jobs.catalog.builtin.answer import kept_headers, refuse_unexpected, text_of
from jobs.catalog.builtin.errors import HttpRequestFailed, HttpRequestRefused
from jobs.catalog.builtin.request import (
    METHODS,
    Request,
    checked_header,
    checked_statuses,
    parsed_url,
)
from jobs.catalog.context import current_run
from jobs.catalog.registry import job
from jobs.core.conf import setting

TIMEOUT_LIMIT: Final = 300
PORTS: Final = (443, 8443)
"""The ports of hosts that are not allow-listed."""


def _checked_url(url: str) -> str:
    parsed_url(url)
    return url


def _checked_headers(headers: dict[str, str]) -> dict[str, str]:
    for name, value in headers.items():
        try:
            checked_header(name, value)
        except ValueError as error:
            raise ValueError(f"{name[:100]!r} {error}") from None
    return headers


@job(
    label="HTTP request",
    name="fairshift.http_request",
    retry_on=HttpRequestFailed,
    give_up_on=HttpRequestRefused,
)
def http_request(  # noqa: PLR0917  Celery callers may pass arguments by position
    method: Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"],
    url: Annotated[str, AfterValidator(_checked_url)],
    headers: Annotated[dict[str, str], AfterValidator(_checked_headers)] = {},  # noqa: B006  only read
    body: str = "",
    json: JsonValue = None,
    expect_status: Annotated[str, AfterValidator(checked_statuses)] = "2xx",
    timeout_seconds: Annotated[float, Field(gt=0, le=TIMEOUT_LIMIT)] = 30,
) -> dict[str, Any]:
    """Send one HTTP request and keep the answer's status, main headers and first 64 KiB.

    `json` is sent as the body, with its content type; give it or `body`, not both. The time limit
    covers everything from the name's look-up to the last byte. Redirects are not followed. Raises
    HttpRequestFailed where another attempt may succeed (connection errors, 408, 425, 429, 5xx), and
    HttpRequestRefused otherwise.
    """
    request = build_request(method, url, headers=headers, body=body, json=json)
    if not 0 < timeout_seconds <= TIMEOUT_LIMIT:
        problem = f"timeout_seconds is more than 0 and at most {TIMEOUT_LIMIT}"
        raise HttpRequestRefused(str(request), problem)
    started, run = time.monotonic(), current_run()
    answer = fetch(
        request,
        timeout_seconds=timeout_seconds,
        allowed=setting("HTTP_ALLOWED_HOSTS"),
        owner=run.owner if run else None,
    )
    seconds = time.monotonic() - started
    refuse_unexpected(request, answer, expected=expect_status)
    return {
        "status": answer.status,
        "headers": kept_headers(answer.headers),
        "body": text_of(answer),
        "is_cut": answer.is_cut,
        "seconds": round(seconds, 3),
    }


def build_request(
    method: str, url: str, *, headers: dict[str, str], body: str, json: Any
) -> Request:
    """Return a checked request, also for plain Celery calls; raise HttpRequestRefused."""
    if method not in METHODS:
        raise HttpRequestRefused(f"method {method[:20]!r}", f"is one of: {', '.join(METHODS)}")
    try:
        parsed = parsed_url(url)
    except ValueError as error:
        raise HttpRequestRefused("url", str(error)) from None
    shown = f"{method} {parsed.shown}"
    try:
        _checked_headers(headers)
    except ValueError as error:
        raise HttpRequestRefused(shown, f"header {error}") from None
    if body and json is not None:
        raise HttpRequestRefused(shown, "both body and json are given; give one")
    content = (
        body.encode() if json is None else dumps(json, ensure_ascii=False, allow_nan=False).encode()
    )
    own = {"Host": parsed.authority, "User-Agent": "Fairshift", "Connection": "close"}
    if content or method in ("POST", "PUT", "PATCH"):
        own["Content-Length"] = str(len(content))
    if content:
        own["Content-Type"] = "text/plain; charset=utf-8" if json is None else "application/json"
    given = {name.lower() for name in headers}
    merged = {name: value for name, value in own.items() if name.lower() not in given}
    return Request(method=method, url=parsed, headers=merged | headers, body=content)


def fetch(
    request: Request,
    *,
    timeout_seconds: float,
    allowed: Iterable[str],
    owner: str | None = None,
    resolve: wire.Resolver = wire.addresses,
    dial: wire.Dialler = socket.create_connection,
    tls: ssl.SSLContext | None = None,
) -> wire.Answer:
    """Send a request to an address that was checked, and not resolved again; return the answer."""
    url, deadline = request.url, wire.Deadline(timeout_seconds)
    is_listed = is_allowed(url.host, url.port, allowed=allowed, owner=owner)
    refuse_at_once(request, allowed=allowed, owner=owner)
    try:
        found = wire.resolved(resolve, url, deadline)
        if not is_listed:
            _refuse_special(request, found)
            _refuse_port(request)
        connection = wire.connected(found, url, deadline, dial=dial, tls=tls)
        return wire.exchange(connection, request, deadline)
    except (TimeoutError, HttpTimeoutError) as error:
        problem = f"took longer than the limit of {timeout_seconds:g} s"
        raise HttpRequestFailed(str(request), problem) from error
    except wire.AnswerTooLarge as error:
        raise HttpRequestRefused(str(request), str(error)) from error
    # ValueError: an invalid name, or a negative length in the answer.
    except (OSError, HTTPException, HTTPError, ValueError) as error:
        raise HttpRequestFailed(str(request), _connection_problem(error)) from error


def refuse_at_once(request: Request, *, allowed: Iterable[str], owner: str | None = None) -> None:
    """Raise HttpRequestRefused for a host that needs no look-up, unless it is allow-listed."""
    if is_allowed(request.url.host, request.url.port, allowed=allowed, owner=owner):
        return
    if request.url.scheme != "https":
        raise HttpRequestRefused(
            str(request), f"http is for allow-listed hosts; {_advice(request.url.host)}"
        )
    if is_odd_address(request.url.host):
        raise HttpRequestRefused(str(request), "the host is a number; write an address as a.b.c.d")
    if is_address(request.url.host):
        _refuse_special(request, [request.url.host])


def _refuse_special(request: Request, found: list[str]) -> None:
    for address in found:
        kind = why_not_public(address)
        # One is enough: a name with public and private addresses is suspicious.
        if kind is not None:
            problem = f"the host's address is {kind}; {_advice(request.url.host)}"
            raise HttpRequestRefused(str(request), problem)


def _refuse_port(request: Request) -> None:
    if request.url.port not in PORTS:
        ports = " or ".join(str(port) for port in PORTS)
        entry = f"{request.url.bracketed_host}:{request.url.port}"
        problem = f"the port of a host that is not allow-listed is {ports}; {_advice(entry)}"
        raise HttpRequestRefused(str(request), problem)


def _advice(entry: str) -> str:
    return f"to allow it, add {entry!r} to FAIRSHIFT['HTTP_ALLOWED_HOSTS']"


def _connection_problem(error: Exception) -> str:
    reason = getattr(error, "strerror", None) or getattr(error, "verify_message", None)
    return f"no answer ({type(error).__name__}{f': {reason}' if reason else ''})"
