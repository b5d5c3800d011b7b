"""Redis 7 of Debian as processes of a scene: over TCP, TLS and a Unix socket, behind Sentinel."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import redis

from fleet.stack.stack import free_port
from tests.waiting import answers, wait_for

Options = dict[str, str | int]


@dataclass
class Server:
    """One server: its URL in Celery's form, a client, and its process."""

    url: str
    client: redis.Redis
    process: subprocess.Popen[bytes]

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


@contextmanager
def server(url: str, client: redis.Redis, *options: str) -> Iterator[Server]:
    """Run Debian's `redis-server` in a folder of its own, until the end of the scene."""
    with folder() as home:
        process = subprocess.Popen(
            ["redis-server", *options],
            cwd=home,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.STDOUT,
        )
        try:
            wait_for(lambda: answers(client), what="Redis answers")
            yield Server(url, client, process)
        finally:
            client.close()
            process.kill()
            process.wait()


@contextmanager
def over_tcp(*options: str) -> Iterator[Server]:
    port = free_port(0)
    client = redis.Redis(port=port)
    url = f"redis://127.0.0.1:{port}/0"
    with server(url, client, "--port", str(port), "--save", "", *options) as running:
        yield running


@contextmanager
def over_unix_socket() -> Iterator[Server]:
    with folder() as home:
        path = home / "redis.sock"
        client = redis.Redis(unix_socket_path=str(path))
        url = f"redis+socket://{path}"
        with server(url, client, "--port", "0", "--save", "", "--unixsocket", str(path)) as running:
            yield running


@contextmanager
def over_tls(authority: Authority) -> Iterator[Server]:
    """A server that speaks nothing but TLS, and whose certificate the URL has checked."""
    port = free_port(0)
    client = redis.Redis("127.0.0.1", port, ssl=True, ssl_ca_certs=str(authority.certificate))
    query = f"ssl_cert_reqs=required&ssl_ca_certs={authority.certificate}"
    options = {
        "--port": "0",
        "--tls-port": str(port),
        "--tls-cert-file": str(authority.server_certificate),
        "--tls-key-file": str(authority.server_key),
        "--tls-ca-cert-file": str(authority.certificate),
        "--tls-auth-clients": "no",
        "--save": "",
    }
    words = [word for option in options.items() for word in option]
    with server(f"rediss://127.0.0.1:{port}/0?{query}", client, *words) as running:
        yield running


class Authority:
    """Signs a certificate for 127.0.0.1. Two of them do not believe each other."""

    def __init__(self, home: Path) -> None:
        self.certificate, key = home / "ca.crt", home / "ca.key"
        self.server_certificate, self.server_key = home / "server.crt", home / "server.key"
        request, names = home / "server.csr", home / "names"
        names.write_text("subjectAltName=IP:127.0.0.1")
        new = ("req", "-newkey", "rsa:2048", "-nodes", "-subj")
        _openssl(*new, "/CN=Fairshift tests", "-x509", "-keyout", key, "-out", self.certificate)
        _openssl(*new, "/CN=127.0.0.1", "-keyout", self.server_key, "-out", request)
        signed = ("-CA", self.certificate, "-CAkey", key, "-CAcreateserial", "-extfile", names)
        _openssl("x509", "-req", "-in", request, *signed, "-out", self.server_certificate)


def _openssl(*words: str | Path) -> None:
    subprocess.run(["openssl", *words], check=True, capture_output=True)


@dataclass
class Watched:
    """A master with one replica, and a Sentinel that makes the one the other."""

    url: str
    name: str
    master: Server
    replica: Server
    sentinel: Server

    def has_failed_over(self) -> bool:
        """Say whether the replica is the master, to itself, to Sentinel, and to the old one."""
        if self.replica.client.role()[0] != b"master":
            return False
        if self.master.process.poll() is None and self.master.client.role()[0] == b"master":
            return False
        _, port = self.sentinel.client.sentinel_get_master_addr_by_name(self.name)
        return bool(port == self.replica.client.connection_pool.connection_kwargs["port"])


@contextmanager
def behind_sentinel() -> Iterator[Watched]:
    """Start all three; the first Sentinel of the URL is down, as one of several may be."""
    with ExitStack() as stack:
        master = stack.enter_context(over_tcp())
        port = master.client.connection_pool.connection_kwargs["port"]
        replica = stack.enter_context(over_tcp("--replicaof", "127.0.0.1", str(port)))
        wait_for(lambda: replica.client.role()[3] == b"connected", what="the replica to follow")
        home, sentinel_port = stack.enter_context(folder()), free_port(0)
        written = home / "sentinel.conf"
        written.write_text(
            f"port {sentinel_port}\n"
            f"sentinel monitor main 127.0.0.1 {port} 1\n"
            "sentinel down-after-milliseconds main 1000\n"
            "sentinel failover-timeout main 5000\n"
        )
        client = redis.Redis(port=sentinel_port)
        url = f"sentinel://127.0.0.1:{free_port(0)}/0;sentinel://127.0.0.1:{sentinel_port}/0"
        sentinel = stack.enter_context(server(url, client, str(written), "--sentinel"))
        wait_for(lambda: client.sentinel_slaves("main"), what="Sentinel to see the replica")
        yield Watched(url, "main", master, replica, sentinel)


@contextmanager
def folder() -> Iterator[Path]:
    """A folder whose path is short enough for a socket."""
    path = Path(tempfile.mkdtemp(prefix="fs-"))
    try:
        yield path
    finally:
        shutil.rmtree(path)
