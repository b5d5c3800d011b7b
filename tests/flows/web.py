"""Real web processes of a scene, and requests to them with their times."""

import json
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import urllib3

from fleet.stack import programs
from fleet.stack.stack import Stack, free_port
from tests.flows.kept import kept
from tests.flows.processes import Processes


@dataclass(frozen=True)
class Answer:
    """One answer, and how many seconds it took."""

    status: int
    headers: urllib3.HTTPHeaderDict
    body: Any
    seconds: float


class Site:
    """The address of the web processes, and a token for it."""

    def __init__(self, url: str, token: str, stack: Stack) -> None:
        self.url = url
        self.token = token
        self._stack = stack
        self._pool = urllib3.PoolManager(retries=False, timeout=30, maxsize=8)

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

    def kill_one(self) -> None:
        """SIGKILL one web process; its parent starts another."""
        parent = self._stack.pid("web")
        children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
        os.kill(int(children[0]), signal.SIGKILL)


@contextmanager
def site(scene: Processes, token: str, **environ: str) -> Iterator[Site]:
    """Run two web processes until the block ends."""
    # Scenes run side by side: no preferred port.
    port = free_port(0)
    environ = {
        "FAIRSHIFT_OFFERED_TASKS": "tests.*,flows.*",
        "ALLOWED_HOSTS": "127.0.0.1",
        **environ,
    }
    web = programs.web(port=port, processes=2, threads=4)
    with kept(scene, web, restart=False, **environ) as stack:
        yield Site(f"http://127.0.0.1:{port}", token, stack)
