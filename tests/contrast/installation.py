"""Workers of the app beside this, as processes, on a queue of the scene's own."""

import json
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import redis

from tests.waiting import wait_for

ROOT = Path(__file__).resolve().parents[2]
FAKETIME = "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1"
FAKING = {
    "LD_PRELOAD": FAKETIME,
    "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    "PYTHONPATH": f"{ROOT / 'tests/machines/clock'}:{ROOT}",
}
"""The variables of a program whose clock is wrong, but for the offset: FAKETIME, or its file."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the tasks' log."""

    word: str
    name: str
    pid: int
    at: float


class Contrast:
    """One side of a contrast: "stock" or "fair"."""

    def __init__(
        self,
        side: str,
        folder: Path,
        broker: str,
        *,
        client: redis.Redis | None = None,
        **environ: str,
    ) -> None:
        self.side = side
        self.queue = f"contrast-{uuid.uuid4().hex[:8]}"
        self.folder = folder
        self._workers: list[subprocess.Popen[bytes]] = []
        self._log = folder / "tasks.log"
        self._log.touch()
        self._environ = {
            **os.environ,
            "CONTRAST": side,
            "CONTRAST_BROKER": broker,
            "CONTRAST_QUEUE": self.queue,
            "CONTRAST_LOG": str(self._log),
            **environ,
        }
        # With it Celery would load Fairshift's own project, which registers the fair transport.
        self._environ.pop("DJANGO_SETTINGS_MODULE", None)
        path = broker.removeprefix("redis+socket://").partition("?")[0]
        self.client = client or redis.Redis(unix_socket_path=path)

    def worker(
        self,
        *options: str,
        slots: int = 1,
        wait: bool = True,
        queues: str = "",
        conf: Mapping[str, Any] | None = None,
        mingle: bool = False,
    ) -> subprocess.Popen[bytes]:
        """Start a worker, on the scene's queue or on these; return when it is ready."""
        name = f"w{len(self._workers)}-{self.queue}"
        log = (self.folder / f"{name}.log").open("wb")
        command = ["celery", "-A", "tests.contrast.app", "worker", "-n", name]
        command += ["-Q", queues or self.queue]
        quiet = ["--without-gossip", "--without-heartbeat", "-l", "INFO"]
        if not mingle:
            quiet.append("--without-mingle")
        process = subprocess.Popen(
            [sys.executable, "-m", *command, "-c", str(slots), *quiet, *options],
            env={**self._environ, "CONTRAST_CONF": json.dumps(conf or {})},
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        self._workers.append(process)
        if wait:
            self.await_ready(process)
        return process

    def await_ready(self, worker: subprocess.Popen[bytes]) -> None:
        """Return when a worker, started without waiting for it, is ready."""
        text = self.folder / f"{self.name(worker)}.log"
        wait_for(lambda: b" ready." in text.read_bytes(), seconds=30, what="the worker")

    def name(self, worker: subprocess.Popen[bytes]) -> str:
        """Return what a worker was named."""
        return f"w{self._workers.index(worker)}-{self.queue}"

    def log_end(self, worker: subprocess.Popen[bytes], *, lines: int = 40) -> str:
        """Return the last lines of a worker's log."""
        text = (self.folder / f"{self.name(worker)}.log").read_text(errors="replace")
        return "\n".join(text.splitlines()[-lines:])

    def call(self, code: str, **environ: str) -> None:
        """Run a line of Python in a process of the app's, such as `run.delay(1)`."""
        subprocess.run(
            [sys.executable, "-c", f"from tests.contrast.app import *\n{code}"],
            env={**self._environ, **environ},
            check=True,
            timeout=60,
        )

    @contextmanager
    def clock(self, offset: str) -> Iterator[None]:
        """What is started here has a clock that is wrong by so much: "+120s"; "" for a true one."""
        before = self._environ
        if offset:
            self._environ = {**before, **FAKING, "FAKETIME": offset}
        try:
            yield
        finally:
            self._environ = before

    def kill(self, worker: subprocess.Popen[Any]) -> None:
        """Kill a worker and its children, as a power cut would."""
        os.killpg(worker.pid, signal.SIGKILL)
        worker.wait()

    @property
    def lines(self) -> list[Line]:
        """Return what the tasks' log says, in order."""
        return [
            Line(word, name, int(pid), float(at))
            for word, name, pid, at in map(str.split, self._log.read_text().splitlines())
        ]

    def said(self, word: str) -> list[str]:
        """Return the names of which the tasks' log says this word, in order."""
        return [line.name for line in self.lines if line.word == word]

    def times(self, word: str, name: str) -> list[float]:
        """Return when the log says this word of this name, by the clock of who wrote it."""
        return [line.at for line in self.lines if (line.word, line.name) == (word, name)]

    def held(self) -> dict[str, int]:
        """Return how many messages each worker holds."""
        keys = self.client.scan_iter(f"fairshift:{{{self.queue}}}:held:*", count=1_000)
        return {os.fsdecode(key): self.client.hlen(key) for key in keys}

    def close(self) -> None:
        for worker in self._workers:
            if worker.poll() is None:
                self.kill(worker)
            print(self.log_end(worker))  # shown when the scene has failed
        for key in self.client.scan_iter(f"*{self.queue}*", count=1_000):
            self.client.delete(key)
        self.client.close()


@contextmanager
def contrast(*given: Any, **more: Any) -> Iterator[Contrast]:
    """One side, without a worker yet; afterwards nothing of it is left."""
    scene = Contrast(*given, **more)
    try:
        yield scene
    finally:
        scene.close()
