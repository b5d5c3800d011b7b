"""Tasks of the long proofs that the short scenes have no use for."""

import os
import resource
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from celery import shared_task
from celery.exceptions import SoftTimeLimitExceeded

from tests.flows.tasks import WAYS
from tests.tasks import logged

ROOM_BYTES = 64 * 1024 * 1024


def _spin() -> None:
    """Never come back, and never wait either; nor listen to the soft time limit."""
    while True:
        with suppress(SoftTimeLimitExceeded):
            while True:
                pass


def _devour() -> None:
    """Take more memory than there is."""
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    resource.setrlimit(resource.RLIMIT_AS, (8 * used + ROOM_BYTES, resource.RLIM_INFINITY))
    kept = []
    try:
        while True:
            kept.append(bytearray(ROOM_BYTES))
    except MemoryError:
        # As the kernel does when the limit is that of a container.
        os.kill(os.getpid(), signal.SIGKILL)


POISONS: dict[str, Callable[[], Any]] = {
    "exit": WAYS["exit"],
    "segv": WAYS["segv"],
    "memory": _devour,
    "endless": _spin,
}


@shared_task(name="chaos.poison")
def poison(way: str) -> None:
    """End the own process, or never end, in that way."""
    with logged():
        POISONS[way]()


@shared_task(name="chaos.stumble")
def stumble(seconds: float, times: int = 0) -> dict[str, Any]:
    """Take `seconds`, then raise in the first `times` attempts."""
    with logged() as facts:
        time.sleep(seconds)
        if facts["attempt"] <= times:
            raise ValueError(f"attempt {facts['attempt']} of {times} that fail")
        return {"token": facts["token"], "attempt": facts["attempt"]}


@shared_task(name="chaos.note")
def note(name: str) -> None:
    """Append a line with this name to the log of plain calls: see `noted`."""
    with logged(), _notes(Path(os.environ["JUDGE_LOG"]).parent).open("a") as notes:
        notes.write(f"{name}\n")


def noted(folder: Path) -> list[str]:
    """Return the names that `note` has written in a scene's folder, in order."""
    notes = _notes(folder)
    return notes.read_text().splitlines() if notes.exists() else []


def _notes(folder: Path) -> Path:
    return folder / "notes.log"
