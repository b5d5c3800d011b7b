"""A device server as a process of its own, as the demo runs it."""

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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


@contextmanager
def servers(folder: Path) -> Iterator[Callable[..., RunningServer]]:
    """Start device servers with the given options; every one is gone at the end."""
    started: list[subprocess.Popen[bytes]] = []

    def start(*options: str) -> RunningServer:
        port_file = folder / f"port-{len(started)}"
        words = ["-m", "config.demo.device_server", "--port-file", str(port_file), *options]
        process = Preloaded(words, os.environ, stdout=subprocess.DEVNULL)
        started.append(process)
        wait_for(lambda: port_file.exists() or process.poll() is not None, seconds=20)
        assert process.poll() is None, f"it ended with {process.returncode}"
        return RunningServer(int(port_file.read_text()), process)

    try:
        yield start
    finally:
        for process in started:
            process.kill()
            process.wait()


@pytest.fixture
def start_server(tmp_path: Path) -> Iterator[Callable[..., RunningServer]]:
    """Start device servers of this test."""
    with servers(tmp_path) as start:
        yield start


@pytest.fixture(scope="module")
def one_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A server of one device, for requests that change nothing."""
    with servers(tmp_path_factory.mktemp("devices")) as start:
        yield start("--devices", "1", "--lab-devices", "0", "--failing-share", "0")
