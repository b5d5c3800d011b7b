"""An HTTP server of the tests' own, on a real socket, that behaves as its path says."""

from __future__ import annotations

import json
import shutil
import ssl
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from pytest_django import Settings

HOSTILE_BYTES = 256 * 2**20
"""Where a hostile answer ends when its reader does not end it."""


class Behaviour(BaseHTTPRequestHandler):
    """Answers by path: /echo, /status/N, /bytes/N, /drip/headers, /drip/body, /flood/ …"""

    protocol_version = "HTTP/1.1"
    server: Server

    def answer(self) -> None:
        self.server.requests.append(f"{self.command} {self.path}")
        kind, _, rest = urlsplit(self.path).path.removeprefix("/").partition("/")
        getattr(self, kind)(rest)

    # Names that the base class looks for.
    do_GET = do_HEAD = do_POST = do_PUT = answer  # noqa: N815

    def send(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        for name, value in ({"Content-Length": str(len(body))} | headers).items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def echo(self, _rest: str) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        seen = {"method": self.command, "path": self.path, "body": body.decode()}
        seen["headers"] = {name.lower(): value for name, value in self.headers.items()}
        self.send(200, json.dumps(seen).encode(), Content_Type="application/json", X_Other="1")

    def status(self, rest: str) -> None:
        query = parse_qs(urlsplit(self.path).query)
        self.send(int(rest), **{name: values[0] for name, values in query.items()})

    def text(self, charset: str) -> None:
        self.send(200, b"caf\xe9", Content_Type=f"text/plain; charset={charset}")

    def bytes(self, rest: str) -> None:
        self.send(200, b"x" * int(rest))

    def drip(self, rest: str) -> None:
        """Send a byte now and then, and never come to an end."""
        self.wfile.write(b"HTTP/1.1 200 OK\r\n")
        if rest == "body":
            self.wfile.write(b"Content-Length: 100000\r\n\r\n")
        while not self.server.stopping.wait(0.02):
            self.wfile.write(b"x")

    def flood(self, _rest: str) -> None:
        """Send at full speed, and never come to an end."""
        self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000000\r\n\r\n")
        while not self.server.stopping.is_set():
            self.wfile.write(b"x" * 65_536)

    def silent(self, _rest: str) -> None:
        self.server.stopping.wait()

    def cut(self, _rest: str) -> None:
        self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort")
        self.close_connection = True

    def nonsense(self, _rest: str) -> None:
        self.wfile.write(b"220 mail.example ESMTP\r\n")
        self.close_connection = True

    def hostile(self, kind: str) -> None:
        """Send an answer that never ends, at full speed and in a form that a client may trust."""
        ok, chunked = b"HTTP/1.1 200 OK\r\n", b"Transfer-Encoding: chunked\r\n\r\n"
        beginning, repeated = {
            "chunk-1": (ok + chunked + b"-1\r\n", b"x" * 65_536),
            "chunk-5": (ok + chunked + b"-5\r\n", b"x" * 65_536),
            "extensions": (ok + chunked, b"1;" + b"x" * 60_000 + b"\r\nx\r\n"),
            "chunk-line": (ok + chunked + b"1;", b"x" * 65_536),
            "trailers": (ok + chunked + b"0\r\n", b"X-A: b\r\n" * 1000),
            "headers": (ok, (b"X-A: " + b"x" * 60_000 + b"\r\n")),
            "continue": (b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 1000),
        }[kind]
        self.close_connection = True
        self.wfile.write(beginning)
        while self.server.sent < HOSTILE_BYTES and not self.server.stopping.is_set():
            self.server.sent += self.wfile.write(repeated)

    def log_message(self, *_: Any) -> None:
        """Keep the test output clean."""


class Server(ThreadingHTTPServer):
    """The server; `requests` are those that arrived, `sent` the bytes of a hostile answer."""

    daemon_threads = True

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        super().__init__(("127.0.0.1", 0), Behaviour)
        if tls is not None:
            self.socket = tls.wrap_socket(self.socket, server_side=True)
        self.requests: list[str] = []
        self.sent = 0
        self.stopping = Event()

    @property
    def port(self) -> int:
        return self.server_address[1]

    def handle_error(self, *_: Any) -> None:
        """A client that hangs up in the middle is what some tests are about."""


def running(server: Server) -> Iterator[Server]:
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.stopping.set()
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def server() -> Iterator[Server]:
    """A plain HTTP server on a port of 127.0.0.1."""
    yield from running(Server())


@pytest.fixture
def allowed(server: Server, settings: Settings) -> str:
    """The base URL of the server, allow-listed by host and port."""
    settings.FAIRSHIFT = {"HTTP_ALLOWED_HOSTS": [f"127.0.0.1:{server.port}"]}
    return f"http://127.0.0.1:{server.port}"


@dataclass
class Certificate:
    """A self-made certificate for `device.test`, and a client's view that trusts it."""

    folder: Path
    client: ssl.SSLContext = field(init=False)
    server: ssl.SSLContext = field(init=False)

    def __post_init__(self) -> None:
        key, certificate = self.folder / "key.pem", self.folder / "certificate.pem"
        subprocess.run(
            [
                *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1"),
                *("-keyout", str(key), "-out", str(certificate), "-subj", "/CN=device.test"),
                *("-addext", "subjectAltName=DNS:device.test"),
            ],
            check=True,
            capture_output=True,
        )
        self.client = ssl.create_default_context(cafile=str(certificate))
        self.server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.server.load_cert_chain(certificate, key)


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    if shutil.which("openssl") is None:
        pytest.skip("needs the openssl program, to make a certificate")
    return Certificate(tmp_path_factory.mktemp("tls"))


@pytest.fixture
def tls_server(certificate: Certificate) -> Iterator[Server]:
    """An HTTPS server for `device.test` on a port of 127.0.0.1."""
    yield from running(Server(certificate.server))
