"""The part of HTTP/1.1 that the device server needs: reads a request, writes an answer."""

import asyncio
import json
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

MAX_HEAD_BYTES = 16 * 1024
MAX_BODY_BYTES = 64 * 1024
REQUEST_SECONDS = 3.0
METHODS = frozenset({"GET", "PUT", "POST", "DELETE", "HEAD", "PATCH", "OPTIONS"})


class BadRequest(Exception):
    """The bytes are no valid request. Answer 400 and close the connection."""


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A request; `keep_alive` says whether another may follow."""

    method: str
    target: str
    body: bytes
    keep_alive: bool


async def read_request(reader: asyncio.StreamReader, /) -> HttpRequest | None:
    """Return the next request of a connection; None if the client has closed it.

    It waits without limit for a request to begin, which must be complete within `REQUEST_SECONDS`.
    Raises BadRequest, or ConnectionError after a reset.
    """
    first = await reader.read(1)
    if not first:
        return None
    try:
        async with asyncio.timeout(REQUEST_SECONDS):
            head = first + await reader.readuntil(b"\r\n\r\n")
            method, target, version, headers = _parse_head(head)
            body = await reader.readexactly(_content_length(headers))
    except asyncio.LimitOverrunError as error:
        raise BadRequest(f"head: longer than {MAX_HEAD_BYTES} bytes") from error
    except asyncio.IncompleteReadError as error:
        raise BadRequest("the request ended early") from error
    except TimeoutError as error:
        raise BadRequest(f"the request was not complete in {REQUEST_SECONDS:g} s") from error
    wish = headers.get("connection", "keep-alive" if version == "HTTP/1.1" else "close")
    return HttpRequest(method, target, body, keep_alive=wish.lower() != "close")


def _parse_head(head: bytes) -> tuple[str, str, str, dict[str, str]]:
    try:
        request_line, *lines = head.decode("ascii").removesuffix("\r\n\r\n").split("\r\n")
    except UnicodeDecodeError as error:
        raise BadRequest("head: not ASCII") from error
    match request_line.split(" "):
        case [method, target, "HTTP/1.1" | "HTTP/1.0" as version] if method in METHODS:
            pass
        case _:
            raise BadRequest("request line: expected METHOD TARGET HTTP/1.1")
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        name = name.lower()
        if not colon or not name or name != name.strip() or name in headers:
            raise BadRequest("headers: a line is malformed or given twice")
        headers[name] = value.strip()
    return method, target, version, headers


def _content_length(headers: dict[str, str]) -> int:
    if "transfer-encoding" in headers:
        raise BadRequest("transfer-encoding: not supported, send content-length")
    text = headers.get("content-length", "0")
    if not (text.isascii() and text.isdigit()) or len(text) > 12 or int(text) > MAX_BODY_BYTES:
        raise BadRequest(f"content-length: expected 0 to {MAX_BODY_BYTES}")
    return int(text)


def answer(status: HTTPStatus, content: dict[str, Any], /, *, keep_alive: bool = True) -> bytes:
    """Return the bytes of a JSON answer."""
    body = json.dumps(content, separators=(",", ":")).encode()
    head = (
        f"HTTP/1.1 {status.value} {status.phrase}\r\n"
        "Content-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n"
        f"Connection: {'keep-alive' if keep_alive else 'close'}\r\n\r\n"
    )
    return head.encode("ascii") + body
