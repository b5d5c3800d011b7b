"""Submitting processes of a scene: real ones, which a scene may end at any point."""

import signal
import subprocess
import time

from tests.flows.processes import Processes
from tests.preloaded import PROJECT, Preloaded


class Submitter:
    """One `python -m tests.submitter`; its submits are in the scene's submitters' log."""

    def __init__(self, scene: Processes, *options: str, prefix: str, **environ: str) -> None:
        self._process = Preloaded(
            [
                *("-m", "tests.submitter"),
                *("--log", str(scene.folder / "submits.log")),
                *("--prefix", prefix, *options),
            ],
            scene.variables(**environ),
            imports=PROJECT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def until(self, word: str) -> None:
        """Return when it has printed a line that begins with this word."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith(word):
                return
        raise AssertionError(f"it ended before it said {word!r}:\n{self._end()}")

    def go_on(self, *, key: str) -> float:
        """Let it leave the block that it holds open; return the seconds until its answer."""
        assert self._process.stdin is not None
        began_at = time.monotonic()
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        self.until(key)
        return time.monotonic() - began_at

    def kill(self) -> None:
        """End it as a power cut would."""
        self._process.kill()
        assert self.wait() == -signal.SIGKILL

    def stop(self) -> None:
        """Ask it to submit nothing more."""
        self._process.terminate()

    def end(self) -> None:
        """End it like `kill`, if it has not ended by itself."""
        self._process.kill()
        self.wait()

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def wait(self, *, seconds: float = 60) -> int:
        """Wait for its end; return its exit status, below 0 when a signal ended it."""
        self._printed, self._errors = self._process.communicate(timeout=seconds)
        return self._process.returncode

    def waits(self, *, seconds: float = 60) -> list[float]:
        """Wait for its good end; return how many seconds each submit took."""
        assert self.wait(seconds=seconds) == 0, self._errors[-3000:]
        lines = [line.split() for line in self._printed.splitlines()]
        return [float(words[1]) for words in lines if len(words) == 2]

    def _end(self) -> str:
        self.wait()
        return self._errors[-3000:]
