"""Sending one HTTP request to an address that was checked, within one limit of time."""

from __future__ import annotations

import io
import socket
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPMessage, IncompleteRead
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, Final

from jobs.builtin.request import Request, Url

BODY_LIMIT: Final = 64 * 1024

Resolver = Callable[[str, int], list[str]]
Dialler = Callable[[tuple[str, int], float], socket.socket]


class Deadline:
    """A moment on the monotonic clock by which everything must be done."""

    def __init__(self, seconds: float) -> None:
        self.at = time.monotonic() + seconds

    def left(self) -> float:
        """Return the seconds left; raises TimeoutError when there are none."""
        left = self.at - time.monotonic()
        if left <= 0:
            raise TimeoutError("the time limit has passed")
        return left


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back; `body` holds at most BODY_LIMIT bytes of it."""

    status: int
    headers: HTTPMessage
    body: bytes
    is_cut: bool


def addresses(host: str, port: int) -> list[str]:
    """Return the addresses of a host, in the order in which they should be tried."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(sockaddr[0]) for *_, sockaddr in found))


def resolved(resolve: Resolver, url: Url, deadline: Deadline) -> list[str]:
    """Return what `resolve` finds for a URL's host, or raise what it raises, in time.

    In a thread of its own: the system's resolver takes no time limit.
    """
    answers: SimpleQueue[list[str] | Exception] = SimpleQueue()

    def ask() -> None:
        try:
            answers.put(resolve(url.host, url.port))
        # Carried over to the caller, whatever it is.
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
    """Return a connection to the first of the addresses that answers.

    The time is divided among them, so that a silent one does not use it up.
    """
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
    """Send a request and return its answer; closes the connection."""
    http = HTTPConnection(request.url.host)
    # A socket that is there already keeps http.client from looking up and connecting.
    http.sock = _TimedSocket(connection, deadline)
    try:
        http.putrequest(request.method, request.url.path, skip_host=True, skip_accept_encoding=True)
        for name, value in request.headers.items():
            http.putheader(name, value)
        http.endheaders(request.body or None)
        response = http.getresponse()
        body = response.read(BODY_LIMIT + 1)
        # http.client notices an early end by itself only when it is asked for all.
        if len(body) <= BODY_LIMIT and response.length:
            raise IncompleteRead(body, response.length)
        return Answer(
            response.status, response.headers, body[:BODY_LIMIT], is_cut=len(body) > BODY_LIMIT
        )
    finally:
        http.close()
        connection.close()


class _TimedSocket:
    """What http.client needs of a socket, with the time left set anew for each call.

    A socket's own timeout is for one call: a peer that sends a byte a second would
    never exceed it.
    """

    def __init__(self, connection: socket.socket, deadline: Deadline) -> None:
        self.connection = connection
        self.deadline = deadline

    def sendall(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            self.connection.settimeout(self.deadline.left())
            view = view[self.connection.send(view) :]

    def makefile(self, *_args: Any) -> io.BufferedReader:
        return io.BufferedReader(_TimedReader(self))

    def close(self) -> None:
        """Leave the connection open: the answer is read after http.client has let go of it."""


class _TimedReader(io.RawIOBase):
    def __init__(self, timed: _TimedSocket) -> None:
        self.timed = timed

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self.timed.connection.settimeout(self.timed.deadline.left())
        return self.timed.connection.recv_into(buffer)
