"""The processes of a stack: started together, watched, and stopped with all their children.

Each process leads its own group, so that Ctrl-C does not reach it, and gets a signal when this
process dies. There is no thread: the caller calls `watch()` and `new_lines()` regularly.
"""

import os
import signal
import socket
import subprocess
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Protocol, Self

from jobs.management.stack.tether import die_with_parent

RESTART_SECONDS = (0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
HEALTHY_SECONDS = 30.0
FAILED_STARTS = 3  # then a start is given up
SHOWN_LINES = 20
RECENT_LINES = 500
PIPE_BYTES = 65_536
LONGEST_LINE = 1_000_000


class StackError(RuntimeError):
    """A process of the stack ended or did not become ready; the message has its log's end."""


@dataclass(frozen=True)
class Program:
    """How a process is started, and when it is ready.

    `environment` is added to ours. It is ready when `ready_port` of this machine accepts
    connections and its output has `ready_text`.
    """

    name: str
    command: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    ready_port: int | None = None
    ready_text: str = ""


class Running(Protocol):
    """A process that was started, as `subprocess.Popen` is one; it leads its own group."""

    pid: int

    @property
    def returncode(self) -> int | None:
        """Its exit status; None while it runs."""

    def poll(self) -> int | None:
        """Look whether it has ended; return its exit status."""

    def wait(self, timeout: float | None = None) -> int:
        """Return its exit status; raise `subprocess.TimeoutExpired` after so many seconds."""

    def send_signal(self, number: int) -> None:
        """Send it a signal, unless it has ended."""


def start(program: Program, output: BinaryIO) -> Running:
    """Start a program in a group of its own, which this process's end ends."""
    return subprocess.Popen(
        program.command,
        env=os.environ | dict(program.environment),
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        start_new_session=True,
        preexec_fn=die_with_parent(signal.SIGTERM),
    )


class LogFile:
    """A program's output in a file."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path = path
        self._read_to = 0

    def __str__(self) -> str:
        return f"The end of {self._path}"

    def opened(self) -> BinaryIO:
        """Return a file for a new process to write to."""
        return self._path.open("ab")

    def clear(self) -> None:
        """Forget what was written."""
        self._path.write_bytes(b"")
        self._read_to = 0

    def has(self, text: str) -> bool:
        """Say whether this was written since `clear`."""
        return text.encode() in self._path.read_bytes()

    def new_lines(self) -> list[str]:
        """Return the complete lines written since the last call."""
        with self._path.open("rb") as log:
            log.seek(self._read_to)
            text, newline, _ = log.read().rpartition(b"\n")
        self._read_to += len(text) + len(newline)
        return text.decode(errors="replace").splitlines()

    def last_lines(self) -> list[str]:
        """Return the newest lines, for an error."""
        text = self._path.read_bytes()[-20_000:]
        return text.decode(errors="replace").splitlines()[-SHOWN_LINES:]


class Pipe:
    """As `LogFile`, in a pipe that the caller must read: a full one stops the program."""

    def __init__(self) -> None:
        self._read_end, self._write_end = os.pipe()
        os.set_blocking(self._read_end, False)
        self._rest = b""
        self._recent: deque[str] = deque(maxlen=RECENT_LINES)

    def __str__(self) -> str:
        return "Its last lines"

    def fileno(self) -> int:
        """Return what `select` waits for."""
        return self._read_end

    def opened(self) -> BinaryIO:
        return os.fdopen(os.dup(self._write_end), "wb")

    def clear(self) -> None:
        self._recent.clear()

    def has(self, text: str) -> bool:
        return any(text in line for line in self._recent)

    def new_lines(self) -> list[str]:
        parts = [self._rest]
        with suppress(BlockingIOError):
            while part := os.read(self._read_end, PIPE_BYTES):
                parts.append(part)
        text, _newline, self._rest = b"".join(parts).rpartition(b"\n")
        if len(self._rest) > LONGEST_LINE:
            text, self._rest = text + b"\n" + self._rest, b""
        lines = text.decode(errors="replace").splitlines()
        self._recent.extend(lines)
        return lines

    def last_lines(self) -> list[str]:
        return list(self._recent)[-SHOWN_LINES:]


class Stack:
    """Programs as running processes; their output goes to `<log_folder>/<name>.log`, or to pipes.

    `restart_seconds` are the pauses before a restart; each early death uses the next one.
    `starter` starts a program; its output goes to the open file.
    """

    def __init__(
        self,
        programs: Sequence[Program],
        *,
        log_folder: Path | None,
        restart: bool = False,
        restart_seconds: Sequence[float] = RESTART_SECONDS,
        starter: Callable[[Program, BinaryIO], Running] = start,
    ) -> None:
        self._running = {
            program.name: _Watched(
                program,
                output=LogFile(log_folder / f"{program.name}.log") if log_folder else Pipe(),
                restart_seconds=restart_seconds,
                starter=starter,
            )
            for program in programs
        }
        self._restart = restart

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start every program, with fresh logs."""
        for running in self._running.values():
            running.output.clear()
            running.spawn()

    def wait_ready(self, *, seconds: float = 60.0) -> None:
        """Wait until every program is ready; raise StackError if one ends or takes longer."""
        deadline = time.monotonic() + seconds
        for running in self._running.values():
            while not running.is_ready():
                self.watch()
                self.refuse_bad_starts()
                if time.monotonic() > deadline:
                    raise running.error(f"was not ready within {seconds:g} s")
                time.sleep(0.05)

    @property
    def was_ready(self) -> bool:
        """Whether every program was ready, at a look of `refuse_bad_starts`."""
        return all(running.was_ready for running in self._running.values())

    def refuse_bad_starts(self) -> None:
        """Raise StackError if a program that was never ready has ended at each of its starts."""
        for running in self._running.values():
            running.is_ready()
            if running.failures >= FAILED_STARTS and not running.was_ready:
                raise running.error(f"ended with {running.returncode} at each start")

    def watch(self) -> None:
        """Restart the processes that have ended, or raise StackError."""
        if not self._restart:
            self.refuse_ended()
        for running in self._running.values():
            if not running.is_alive():
                running.spawn_when_due()

    def refuse_ended(self) -> None:
        """Raise StackError if a process has ended, with its name and the end of its log."""
        for running in self._running.values():
            if not running.is_alive():
                raise running.error(f"ended with {running.returncode}")

    def pid(self, name: str) -> int | None:
        """Return a program's process id; None while it is down."""
        running = self._running[name]
        return running.pid if running.is_alive() else None

    def kill_group(self, name: str) -> None:
        """Kill a program and all its children."""
        self._running[name].kill()

    def new_lines(self) -> Iterator[tuple[str, str]]:
        """Yield (name, line) for each complete line written since the last call."""
        for name, running in self._running.items():
            for line in running.output.new_lines():
                yield name, line

    def pipes(self) -> list[Pipe]:
        """Return the pipes that `select` may wait for."""
        outputs = [running.output for running in self._running.values()]
        return [output for output in outputs if isinstance(output, Pipe)]

    def ask_to_stop(self) -> None:
        """Send SIGTERM to every process, the last started first."""
        for running in reversed(self._running.values()):
            running.tell(signal.SIGTERM)

    def statuses(self) -> dict[str, int | None]:
        """Return the exit status of each program's last process; None while it runs."""
        return {name: running.status() for name, running in self._running.items()}

    def stop(self, *, grace_seconds: float = 10.0) -> None:
        """Send SIGTERM to every process, the last started first; kill the rest after the grace.

        The children that a process left behind are killed as well.
        """
        self.ask_to_stop()
        deadline = time.monotonic() + grace_seconds
        for running in reversed(self._running.values()):
            running.wait(deadline - time.monotonic())
            running.kill()


class _Watched:
    """One program and its current process."""

    def __init__(
        self,
        program: Program,
        *,
        output: LogFile | Pipe,
        restart_seconds: Sequence[float],
        starter: Callable[[Program, BinaryIO], Running],
    ) -> None:
        self.output = output
        self._restart_seconds = restart_seconds
        self._program = program
        self._starter = starter
        self._process: Running | None = None
        self._started_at = 0.0
        self._due_at: float | None = None
        self.failures = 0
        self.was_ready = False

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    @property
    def returncode(self) -> int | None:
        return self._process.returncode if self._process else None

    def status(self) -> int | None:
        return None if self._process is None else self._process.poll()

    def is_alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def is_ready(self) -> bool:
        if not self.is_alive():
            return False
        text, port = self._program.ready_text, self._program.ready_port
        is_ready = (not text or self.output.has(text)) and (
            port is None or accepts_connections(port)
        )
        self.was_ready = self.was_ready or is_ready
        return is_ready

    def spawn(self) -> None:
        with self.output.opened() as output:
            self._process = self._starter(self._program, output)
        self._started_at = time.monotonic()
        self._due_at = None

    def spawn_when_due(self) -> None:
        """Start again after a pause, which grows if the process dies early."""
        now = time.monotonic()
        if self._due_at is None:
            self.kill()  # children that the dead process left behind
            lived = now - self._started_at
            self.failures = 0 if lived > HEALTHY_SECONDS else self.failures + 1
            last = len(self._restart_seconds) - 1
            self._due_at = now + self._restart_seconds[min(self.failures, last)]
        if now >= self._due_at:
            self.spawn()

    def tell(self, number: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(number)

    def wait(self, seconds: float) -> None:
        if self._process is not None:
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(max(0.0, seconds))

    def kill(self) -> None:
        if self._process is None:
            return
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def error(self, what: str) -> StackError:
        end = "\n".join(f"  {line}" for line in self.output.last_lines())
        return StackError(f"{self._program.name} {what}. {self.output}:\n{end}")


def accepts_connections(port: int) -> bool:
    """Say whether something listens on this port of this machine."""
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def free_port(preferred: int) -> int:
    """Return the preferred port of 127.0.0.1, or another one when it is taken."""
    for port in (preferred, 0):
        with socket.socket() as probe:
            # As servers do: a port with lingering connections counts as free.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            with suppress(OSError):
                probe.bind(("127.0.0.1", port))
                return int(probe.getsockname()[1])
    raise StackError("No port of 127.0.0.1 is free.")
