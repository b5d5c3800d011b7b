"""The side of Fairshift on any server, and workers with clocks of their own."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import redis

from tests.contrast.installation import Contrast

ROOT = Path(__file__).resolve().parents[2]
FAKETIME = "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1"
FAKING = {
    "LD_PRELOAD": FAKETIME,
    "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    "PYTHONPATH": f"{ROOT / 'tests/machines/clock'}:{ROOT}",
}
"""The variables of a program whose clock is wrong, but for the offset: FAKETIME, or its file."""


class Scenery(Contrast):
    """A side of a contrast on the server of this client."""

    def __init__(
        self, side: str, folder: Path, broker: str, client: redis.Redis, **environ: str
    ) -> None:
        super().__init__(side, folder, broker, **environ)
        self.client = client

    def worker(self, *options: str, **how: Any) -> Any:
        return super().worker("--include", "tests.contrast.elsewhere", *options, **how)

    def call(self, code: str, **environ: str) -> None:
        super().call(f"from tests.contrast.elsewhere import *\n{code}", **environ)

    @contextmanager
    def clock(self, offset: str) -> Iterator[None]:
        """What is started here has a clock that is wrong by so much: "+120s"; "" for a true one."""
        before = self._environ
        if offset:
            fake = {"LD_PRELOAD": FAKETIME, "FAKETIME": offset, "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
            self._environ = {**before, **fake}
        try:
            yield
        finally:
            self._environ = before

    def times(self, word: str, name: str) -> list[float]:
        """Return when the log says this word of this name, by the clock of who wrote it."""
        lines = [line.split() for line in self._log.read_text().splitlines()]
        return [float(line[3]) for line in lines if line[:2] == [word, name]]

    def held(self) -> dict[str, int]:
        """Return how many messages each worker holds."""
        keys = self.client.scan_iter(f"fairshift:{{{self.queue}}}:held:*", count=1_000)
        return {os.fsdecode(key): self.client.hlen(key) for key in keys}


@contextmanager
def scenery(*given: Any, **environ: str) -> Iterator[Scenery]:
    """One side, without a worker yet; afterwards nothing of it is left."""
    scene = Scenery(*given, **environ)
    try:
        yield scene
    finally:
        scene.close()
