"""Receivers of webhooks: HTTP servers in threads, each of which behaves as its scene says."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any


@dataclass(frozen=True)
class Received:
    """One request, as it arrived."""

    path: str
    headers: dict[str, str]
    body: str


@dataclass
class Receiver:
    """A server on 127.0.0.1; set `status`, `location` or clear `may_answer` at any time."""

    port: int = 0
    status: int = 204
    location: str = ""
    asked: str = ""
    """The value of Retry-After, if any."""
    may_answer: Event = field(default_factory=Event)
    got: list[Received] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook"

    @property
    def place(self) -> str:
        """As HTTP_ALLOWED_HOSTS has it."""
        return f"127.0.0.1:{self.port}"

    @property
    def ids(self) -> list[str]:
        """The ids of what arrived, in order."""
        return [one.headers["webhook-id"] for one in self.got]


@contextmanager
def receiver(status: int = 204, **facts: Any) -> Iterator[Receiver]:
    """Run a receiver until the end of the block."""
    found = Receiver(status=status, **facts)
    found.may_answer.set()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
            headers = {name.lower(): value for name, value in self.headers.items()}
            found.got.append(Received(self.path, headers, body))
            found.may_answer.wait(timeout=300)
            self.send_response(found.status)
            if found.location:
                self.send_header("Location", found.location)
            if found.asked:
                self.send_header("Retry-After", found.asked)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_args: Any) -> None:
            """Print nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    found.port = server.server_address[1]
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield found
    finally:
        found.may_answer.set()
        server.shutdown()
        server.server_close()
        thread.join()
