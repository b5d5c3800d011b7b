"""Send one HTTP request to a checked address within limits; urllib3 only writes and reads."""

from __future__ import annotations

import io
import socket
import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, Final

from urllib3.connection import HTTPConnection

from jobs.catalog.builtin.request import Request, Url

BODY_LIMIT: Final = 64 * 1024
"""Most bytes of a body that are kept, from its beginning."""
HEADERS_LIMIT: Final = 64 * 1024
"""Bytes on the wire, with the status line and informational answers."""
BODY_WIRE_LIMIT: Final = 8 * BODY_LIMIT
"""Bytes on the wire. A body in chunks of one byte takes six bytes for each."""
PIECE: Final = 16 * 1024

Resolver = Callable[[str, int], list[str]]
Dialler = Callable[[tuple[str, int], float], socket.socket]


class AnswerTooLarge(Exception):
    """More bytes arrived than an answer may have."""


class Deadline:
    """A time limit for several steps, on the monotonic clock."""

    def __init__(self, seconds: float) -> None:
        self.at = time.monotonic() + seconds

    def left(self) -> float:
        """Return the seconds left; raise TimeoutError if there are none."""
        left = self.at - time.monotonic()
        if left <= 0:
            raise TimeoutError("the time limit has passed")
        return left


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer; `body` has at most BODY_LIMIT bytes."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    is_cut: bool


def addresses(host: str, port: int) -> list[str]:
    """Return the addresses of a host, in the order in which they should be tried."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(sockaddr[0]) for *_, sockaddr in found))


def resolved(resolve: Resolver, url: Url, deadline: Deadline) -> list[str]:
    """Run `resolve` in its own thread; return its result, or raise its error or TimeoutError."""
    answers: SimpleQueue[list[str] | Exception] = SimpleQueue()

    def ask() -> None:
        try:
            answers.put(resolve(url.host, url.port))
        # Raised again in the caller's thread.
        except Exception as error:
            answers.put(error)

    Thread(target=ask, daemon=True, name="resolve").start()
    try:
        answer = answers.get(timeout=deadline.left())
    except Empty:
        raise TimeoutError("the name was not resolved in time") from None
    if isinstance(answer, Exception):
        raise answer
    return answer


def connected(
    found: list[str],
    url: Url,
    deadline: Deadline,
    *,
    dial: Dialler = socket.create_connection,
    tls: ssl.SSLContext | None = None,
) -> socket.socket:
    """Return a connection to the first address that answers; each gets a share of the time left."""
    for number, address in enumerate(found):
        share = deadline.left() / (len(found) - number)
        try:
            plain = dial((address, url.port), share)
            break
        except OSError:
            if number == len(found) - 1:
                raise
    else:
        raise OSError("the host has no address")
    if url.scheme == "http":
        return plain
    try:
        plain.settimeout(deadline.left())
        tls = tls or ssl.create_default_context()
        return tls.wrap_socket(plain, server_hostname=url.host)
    except BaseException:
        plain.close()
        raise


def exchange(connection: socket.socket, request: Request, deadline: Deadline) -> Answer:
    """Send a request, return its answer, close the connection. Raises AnswerTooLarge."""
    bounded = _BoundedSocket(connection, deadline)
    http = HTTPConnection(request.url.host)
    # With a socket, urllib3 neither resolves nor connects.
    http.sock = bounded
    try:
        http.request(
            request.method,
            request.url.path,
            body=request.body or None,
            headers=request.headers,
            preload_content=False,
            decode_content=False,
        )
        response = http.getresponse()
        bounded.allow(BODY_WIRE_LIMIT, what=f"a body of {BODY_LIMIT // 1024} KiB")
        body = bytearray()
        for piece in response.stream(PIECE, decode_content=False):
            body += piece
            if len(body) > BODY_LIMIT:
                break
        return Answer(
            response.status,
            response.headers,
            bytes(body[:BODY_LIMIT]),
            is_cut=len(body) > BODY_LIMIT,
        )
    finally:
        http.close()
        connection.close()


class _BoundedSocket:
    """The part of a socket that urllib3 uses, with limits for the whole answer.

    A socket's own timeout is per call. Bytes are counted here, because lengths in an answer may be
    false: urllib3 and http.client read a chunk of -1 bytes to the end of the connection.
    """

    def __init__(self, connection: socket.socket, deadline: Deadline) -> None:
        self.connection = connection
        self.deadline = deadline
        self.allow(HEADERS_LIMIT, what="headers")

    def allow(self, size: int, *, what: str) -> None:
        """Allow `size` more bytes; `what` names them in the error."""
        self.bytes_left = size
        self.limit = f"sent more than {size // 1024} KiB for {what}"

    def sendall(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            self.connection.settimeout(self.deadline.left())
            view = view[self.connection.send(view) :]

    def receive_into(self, buffer: Any) -> int:
        """Read some bytes into a buffer; return how many."""
        self.connection.settimeout(self.deadline.left())
        size = self.connection.recv_into(buffer)
        self.bytes_left -= size
        if self.bytes_left < 0:
            raise AnswerTooLarge(self.limit)
        return size

    def makefile(self, *_args: Any) -> io.BufferedReader:
        return io.BufferedReader(_BoundedReader(self))

    def settimeout(self, _seconds: float | None) -> None:
        """Do nothing: urllib3 would set a timeout per call."""

    def close(self) -> None:
        """Do nothing: the answer is read after urllib3 has closed its socket."""


class _BoundedReader(io.RawIOBase):
    def __init__(self, bounded: _BoundedSocket) -> None:
        self.bounded = bounded

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        return self.bounded.receive_into(buffer)
