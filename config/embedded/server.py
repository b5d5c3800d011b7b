"""One server that is kept running: its start, its first answer, restarts and its end."""

import subprocess
import sys
import time
from abc import ABC, abstractmethod
from signal import Signals

from config.embedded.accounts import Account
from config.embedded.children import spawn, tail
from config.embedded.places import Places

START_SECONDS = 60.0
STOP_SECONDS = 20.0
BACKOFF_SECONDS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
HEALTHY_SECONDS = 30.0


class Server(ABC):
    """A server on a unix socket, as a child of this process."""

    name: str
    url: str
    stop_signal: Signals
    kill_signal: Signals
    refusal = ""
    """Why it last did not answer."""

    def __init__(self, places: Places, *, account: Account) -> None:
        self._places = places
        self._account = account
        self._process: subprocess.Popen[bytes] | None = None
        self._started_at = 0.0
        self._restart_at: float | None = None
        self._failures = 0

    @abstractmethod
    def prepare(self) -> None:
        """Find the program, and make what it needs."""

    @abstractmethod
    def command(self) -> list[str]:
        """Return the command line of the server."""

    @abstractmethod
    def answers(self) -> bool:
        """Say whether it answers now."""

    @property
    def pid(self) -> int | None:
        """The server's process id, None while it is down."""
        return self._process.pid if self._process and self._process.poll() is None else None

    def start(self) -> None:
        """Start the server and wait until it answers; raise OSError with its log's end."""
        self.prepare()
        process = self._spawn()
        deadline = time.monotonic() + START_SECONDS
        while not self.answers():
            has_ended = process.poll() is not None
            if has_ended or time.monotonic() > deadline:
                self.stop()
                log, name = self._places.log(self.name), self.name
                late = f"{name} did not answer within {START_SECONDS:.0f} s: {self.refusal}"
                what = f"{name} did not start." if has_ended else late
                raise OSError(f"{what} The end of {log}:\n{tail(log)}")
            time.sleep(0.02)

    def watch(self, now: float) -> None:
        """Start the server; restart it if it died, after a pause that grows if it dies early."""
        if self._process is None:
            self.start()
        if self.pid is not None:
            return
        if self._restart_at is None:
            self._failures = self._failures + 1 if now - self._started_at < HEALTHY_SECONDS else 0
            pause = BACKOFF_SECONDS[min(self._failures, len(BACKOFF_SECONDS) - 1)]
            self._restart_at = now + pause
            print(f"{self.name} died; starts again in {pause} s", file=sys.stderr)
        if now >= self._restart_at:
            self._spawn()

    def stop(self) -> None:
        """Stop the server cleanly, or kill it if that takes too long."""
        process, self._process = self._process, None
        if process is None:
            return
        for stop_signal in (self.stop_signal, self.kill_signal, Signals.SIGKILL):
            process.send_signal(stop_signal)
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                continue
            return

    def _spawn(self) -> subprocess.Popen[bytes]:
        with self._places.open_log(self.name) as log:
            self._process = spawn(
                self.command(),
                account=self._account,
                log=log,
                folder=self._places.state,
                death_signal=self.stop_signal,
            )
        self._started_at = time.monotonic()
        self._restart_at = None
        return self._process
