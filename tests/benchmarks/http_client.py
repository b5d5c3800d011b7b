"""A client that costs little: raw HTTP/1.1 over one connection that is kept."""

import json
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

SECONDS = 30.0
"""How long one answer may take."""


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


class HttpClient:
    """One connection to a web server on this machine, with a token for its API."""

    root = "/api/v1"

    def __init__(self, port: int, secret: str) -> None:
        self._address = ("127.0.0.1", port)
        self._always = f"Host: 127.0.0.1:{port}\r\n{self.credentials(secret)}\r\n"
        self._socket: socket.socket | None = None

    def credentials(self, secret: str) -> str:
        """Return the header that says who asks."""
        return f"Authorization: Bearer {secret}"

    def call(
        self, method: str, path: str, body: Any = None, *, etag: str = "", status: int = 0
    ) -> Answer:
        """Send a request and return its answer; raise RuntimeError for another status."""
        data = json.dumps(body).encode() if body is not None else b""
        lines = [f"{method} {self.root}{path} HTTP/1.1\r\n{self._always}"]
        if data:
            lines.append(f"Content-Type: application/json\r\nContent-Length: {len(data)}\r\n")
        if etag:
            lines.append(f"If-Match: {etag}\r\n")
        return self.sent("".join([*lines, "\r\n"]).encode() + data, status=status)

    def sent(self, message: bytes, *, status: int = 0) -> Answer:
        """Send a whole request and return its answer; raise RuntimeError for another status."""
        try:
            answer = self._exchanged(message)
        except (BrokenPipeError, ConnectionResetError):
            # The server closes a connection that was idle for 2 s.
            self.close()
            answer = self._exchanged(message)
        if status and answer.status != status:
            asked = message.partition(b" HTTP/")[0].decode()
            raise RuntimeError(f"{asked}: {answer.status} {answer.body[:300]!r}")
        return answer

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def connected(self) -> socket.socket:
        """Return the connection, which is made if there is none."""
        if self._socket is None:
            self._socket = socket.create_connection(self._address, timeout=SECONDS)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return self._socket

    def _exchanged(self, message: bytes) -> Answer:
        connected = self.connected()
        connected.sendall(message)
        answer = self._received(connected)
        if answer.headers.get("connection", "").lower() == "close":
            self.close()
        return answer

    def _received(self, connected: socket.socket) -> Answer:
        data = b""
        while b"\r\n\r\n" not in data:
            data += _more(connected)
        head, _, body = data.partition(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = {
            name.lower(): value.strip() for name, _, value in (s.partition(":") for s in lines)
        }
        left = int(headers.get("content-length", 0)) - len(body)
        parts = [body]
        while left > 0:
            parts.append(_more(connected))
            left -= len(parts[-1])
        return Answer(int(first.split(" ", 2)[1]), headers, b"".join(parts))


class Browser(HttpClient):
    """One connection of a visitor of the pages, by the key of its session."""

    root = ""

    def credentials(self, secret: str) -> str:
        return f"Cookie: sessionid={secret}"

    def poll(self, path: str, *, etag: str = "") -> Answer:
        """Ask for the live part of a page, as the page does every few seconds."""
        lines = [f"GET {path} HTTP/1.1\r\n{self._always}X-Fairshift-Part: 1\r\n"]
        if etag:
            lines.append(f"If-None-Match: {etag}\r\n")
        return self.sent("".join([*lines, "\r\n"]).encode())


def _more(connected: socket.socket) -> bytes:
    data = connected.recv(65_536)
    if not data:
        raise ConnectionResetError("the server closed the connection")
    return data


def side_by_side(
    make: Callable[[], HttpClient],
    act: Callable[[HttpClient, int], Any],
    count: int,
    *,
    clients: int,
) -> tuple[list[Any], float]:
    """Act `count` times, by clients that each wait for their answer; return results and seconds."""
    results: list[Any] = [None] * count
    faults: list[Exception] = []

    def run(first: int) -> None:
        client = make()
        client.connected()
        try:
            for number in range(first, count, clients):
                results[number] = act(client, number)
        except Exception as fault:
            faults.append(fault)
        finally:
            client.close()

    threads = [threading.Thread(target=run, args=(first,)) for first in range(clients)]
    began = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if faults:
        raise faults[0]
    return results, time.monotonic() - began


def at_a_rate(
    make: Callable[[], HttpClient],
    act: Callable[[HttpClient, int], Any],
    *,
    per_second: int,
    seconds: int,
    clients: int,
) -> Sequence[float]:
    """Act at fixed times, whether earlier ones are answered or not; return seconds from then."""
    count = per_second * seconds
    # The clients are connected before the first time.
    begin = time.monotonic() + 0.5

    def timed(client: HttpClient, number: int) -> float:
        at = begin + number / per_second
        time.sleep(max(0.0, at - time.monotonic()))
        act(client, number)
        return time.monotonic() - at

    return side_by_side(make, timed, count, clients=clients)[0]
