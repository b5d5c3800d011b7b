"""A device server as a process of its own, as the demo runs it."""

import os
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path

import pytest

from tests.preloaded import Preloaded
from tests.waiting import wait_for


@dataclass
class RunningServer:
    """A device server that listens on `port` until the test ends."""

    port: int
    process: subprocess.Popen[bytes]

    def connect(self, *, patience: float = 5.0) -> HTTPConnection:
        return HTTPConnection("127.0.0.1", self.port, timeout=patience)


@pytest.fixture
def start_server(tmp_path: Path) -> Iterator[Callable[..., RunningServer]]:
    """Start device servers with the given options; every one is gone after the test."""
    started: list[subprocess.Popen[bytes]] = []

    def start(*options: str) -> RunningServer:
        port_file = tmp_path / f"port-{len(started)}"
        words = ["-m", "config.demo.device_server", "--port-file", str(port_file), *options]
        process = Preloaded(words, os.environ, stdout=subprocess.DEVNULL)
        started.append(process)
        wait_for(lambda: port_file.exists() or process.poll() is not None, seconds=20)
        assert process.poll() is None, f"it ended with {process.returncode}"
        return RunningServer(int(port_file.read_text()), process)

    yield start
    for process in started:
        process.kill()
        process.wait()
