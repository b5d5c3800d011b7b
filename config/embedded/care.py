"""Keeps one server running: starts it, waits for its first answer, restarts and stops it."""

import subprocess
import sys
import time
from signal import Signals
from typing import Protocol

from config.embedded.accounts import Account
from config.embedded.children import spawn, tail
from config.embedded.places import Places

START_SECONDS = 60.0
STOP_SECONDS = 20.0
BACKOFF_SECONDS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
HEALTHY_SECONDS = 30.0


class Server(Protocol):
    """A server, as `Care` needs it."""

    name: str
    url: str
    stop_signal: Signals
    kill_signal: Signals
    refusal: str
    """Why it last did not answer."""

    def prepare(self) -> None: ...
    def command(self) -> list[str]: ...
    def answers(self) -> bool: ...


class Care:
    """One server in the care of the keeper."""

    def __init__(self, server: Server, *, places: Places, account: Account) -> None:
        self.server = server
        self._places = places
        self._account = account
        self._process: subprocess.Popen[bytes] | None = None
        self._started_at = 0.0
        self._restart_at: float | None = None
        self._failures = 0

    @property
    def pid(self) -> int | None:
        """The server's process id, None while it is down."""
        return self._process.pid if self._process and self._process.poll() is None else None

    def begin(self) -> None:
        """Start the server and wait until it answers; raise OSError with its log's end."""
        self.server.prepare()
        process = self._spawn()
        deadline = time.monotonic() + START_SECONDS
        while not self.server.answers():
            has_ended = process.poll() is not None
            if has_ended or time.monotonic() > deadline:
                self.stop()
                log, name = self._places.log(self.server.name), self.server.name
                late = f"{name} did not answer within {START_SECONDS:.0f} s: {self.server.refusal}"
                what = f"{name} did not start." if has_ended else late
                raise OSError(f"{what} The end of {log}:\n{tail(log)}")
            time.sleep(0.02)

    def watch(self, now: float) -> None:
        """Start the server; restart it if it died, after a pause that grows if it dies early."""
        if self._process is None:
            self.begin()
        if self.pid is not None:
            return
        if self._restart_at is None:
            self._failures = self._failures + 1 if now - self._started_at < HEALTHY_SECONDS else 0
            pause = BACKOFF_SECONDS[min(self._failures, len(BACKOFF_SECONDS) - 1)]
            self._restart_at = now + pause
            print(f"{self.server.name} died; starts again in {pause} s", file=sys.stderr)
        if now >= self._restart_at:
            self._spawn()

    def stop(self) -> None:
        """Stop the server cleanly, or kill it if that takes too long."""
        process, self._process = self._process, None
        if process is None:
            return
        for stop_signal in (self.server.stop_signal, self.server.kill_signal, Signals.SIGKILL):
            process.send_signal(stop_signal)
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                continue
            return

    def _spawn(self) -> subprocess.Popen[bytes]:
        with self._places.open_log(self.server.name) as log:
            self._process = spawn(
                self.server.command(),
                account=self._account,
                log=log,
                folder=self._places.state,
                death_signal=self.server.stop_signal,
            )
        self._started_at = time.monotonic()
        self._restart_at = None
        return self._process
