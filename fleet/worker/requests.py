"""Requests for admission that wait for their answers, and those that were refused meanwhile."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from itertools import islice
from typing import NamedTuple

from fleet.contract import Admission, AdmissionRequest, Refusal

Answer = Callable[[Admission | Refusal, float], None]


class Asked(NamedTuple):
    """A request, its answer, and when it came by `time.monotonic()`."""

    request: AdmissionRequest
    answer: Answer
    at: float


class Requests:
    """Requests by key, the oldest first. Not thread-safe; the caller holds the lock."""

    def __init__(self) -> None:
        self._asked: dict[str, Asked] = {}
        self._refused: set[str] = set()
        """Keys of refused requests. They stay until the statement that may answer them ends."""

    def __len__(self) -> int:
        return len(self._asked)

    def add(self, request: AdmissionRequest, answer: Answer) -> bool:
        """Add a request; False if one for the same run is waiting.

        If that one was refused, this one takes its place: its hint has come back to this worker.
        The statement that is under way answers it.
        """
        if request.key in self._asked and request.key not in self._refused:
            return False
        self._refused.discard(request.key)
        self._asked.pop(request.key, None)  # the oldest stay first
        self._asked[request.key] = Asked(request, answer, time.monotonic())
        return True

    def batch(self, most: int) -> dict[str, Asked]:
        """Return the oldest requests, for a statement; forget the refused ones."""
        for key in self._refused:
            del self._asked[key]
        self._refused.clear()
        return dict(islice(self._asked.items(), most))

    def settle(self, batch: Iterable[str]) -> tuple[dict[str, Asked], set[str]]:
        """Remove what a statement has answered; return it, and the keys that were refused before.

        The requests that are returned may be younger than the statement.
        """
        asked = {key: self._asked.pop(key) for key in batch}
        late = self._refused & asked.keys()
        self._refused -= late
        return {key: each for key, each in asked.items() if key not in late}, late

    @property
    def longest_wait(self) -> float:
        """How long (seconds) the oldest request has waited; 0 without one."""
        oldest = next(iter(self._asked.values()), None)
        return 0.0 if oldest is None else time.monotonic() - oldest.at

    def refuse(self) -> list[Asked]:
        """Refuse all requests; return those that were not refused before."""
        fresh = [asked for key, asked in self._asked.items() if key not in self._refused]
        self._refused.update(self._asked)
        return fresh
