"""Real web processes of a scene, and requests to them with their times."""

import json
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import urllib3

from jobs.management.stack import programs
from jobs.management.stack.stack import Stack, free_port
from tests.flows.installation import Installation
from tests.flows.kept import kept
from tests.flows.processes import Processes
from tests.processes import children

MAKE_TOKEN = """
from jobs.models import Owner
from jobs.owners.tokens import make_token
scopes = ["read", "submit", "operate", "approve", "admin"]
print("token", make_token("scene", scopes=scopes, owner=Owner.objects.get(slug="acme")).secret)
"""
CALLERS = 25
"""Threads of a scene that send requests side by side, at most."""


@dataclass(frozen=True)
class Answer:
    """One answer, and how many seconds it took."""

    status: int
    headers: urllib3.HTTPHeaderDict
    body: Any
    seconds: float


class Site:
    """The address of the web processes, and a token for it."""

    def __init__(self, url: str, token: str, stack: Stack | None = None) -> None:
        self.url = url
        self.token = token
        self._stack = stack
        self._pool = urllib3.PoolManager(retries=False, timeout=100, maxsize=CALLERS)

    @property
    def stack(self) -> Stack:
        """What runs the web processes, if this scene started them."""
        assert self._stack is not None
        return self._stack

    def send(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        """Send one request, and return its answer."""
        sent = {"Authorization": f"Bearer {self.token}", **headers}
        content = None if body is None else json.dumps(body).encode()
        if content is not None:
            sent["Content-Type"] = "application/json"
        began_at = time.monotonic()
        answer = self._pool.request(method, f"{self.url}/api/v1{path}", body=content, headers=sent)
        seconds = time.monotonic() - began_at
        return Answer(answer.status, answer.headers, json.loads(answer.data), seconds)

    def kill_all(self) -> None:
        """SIGKILL the web server with all its processes; `watch` starts it again."""
        self.stack.kill_group("web")

    def watch(self) -> None:
        """Start the web server again if it was killed; fail if this site does not."""
        self.stack.watch()

    def kill_one(self) -> None:
        """SIGKILL one web process; its parent starts another."""
        parent = self.stack.pid("web")
        assert parent is not None
        os.kill(min(children(parent)), signal.SIGKILL)


def status(url: str, *, login: str | None = None) -> int:
    """Return the HTTP status of a page, after redirects; `login` is a user and a password."""
    headers = urllib3.make_headers(basic_auth=login)
    return urllib3.request("GET", url, headers=headers, timeout=20).status


def token_of(installation: Installation) -> str:
    """Make a token of the owner acme with every scope; return its secret."""
    output = installation.run(MAKE_TOKEN)
    [token] = [line.split()[1] for line in output.splitlines() if line.startswith("token ")]
    return token


@contextmanager
def site(scene: Processes, token: str, *, restart: bool = False, **environ: str) -> Iterator[Site]:
    """Run two web processes, as `make up` does, until the block ends."""
    # Scenes run side by side: no preferred port.
    port = free_port(0)
    environ = {
        "FAIRSHIFT_OFFERED_TASKS": "tests.*,flows.*",
        "ALLOWED_HOSTS": "127.0.0.1",
        **environ,
    }
    web = programs.web(port=port, processes=2, threads=4)
    with kept(scene, web, restart=restart, **environ) as stack:
        yield Site(f"http://127.0.0.1:{port}", token, stack)
