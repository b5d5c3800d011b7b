"""A worker node without processes: what it was given, what runs, and what it has still to say."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from fleet import Admission, Kind, Node, Report
from jobs.catalog.retry_policy import LOST, delay_after
from tests.jobs.journeys.clock import FakeClock

WAYS = ("succeeds", "raises", "child lost", "time limit", "terminated")
"""How a body may end; only a cancelled one is terminated."""
ERRORS = {"raises": "ValueError", "child lost": LOST, "time limit": "TimeLimitExceeded"}


@dataclass(eq=False)
class Held:
    """An admitted run on its worker. Times are those of the fake clock."""

    admission: Admission
    asked_at: float
    body: int
    """Stands for the process of its body."""
    started_at: float | None = None
    is_over: bool = False
    """Its end is said, or waits to be recorded."""
    is_cancelled: bool = False
    is_lapsed: bool = False
    """Its worker was silent for longer than the lease: the run may be anybody's."""

    @property
    def run_id(self) -> str:
        return self.admission.run_id

    @property
    def token(self) -> int:
        return self.admission.token


@dataclass(eq=False)
class Word:
    """What is to be recorded of a run."""

    held: Held
    kind: Kind
    at: float
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def is_end(self) -> bool:
        return self.kind is not Kind.STARTED


class Worker:
    """One of the three; when it dies, another takes its place."""

    def __init__(self, clock: FakeClock, name: str) -> None:
        self.clock = clock
        self.node = Node(uuid4(), name, 1, "prefork", 4, ("jobs",))
        self.beat_at = clock.now
        self.is_frozen = False
        self.held: list[Held] = []
        self.words: list[Word] = []

    @property
    def waiting(self) -> list[Held]:
        """What has neither started nor been handed back."""
        return [held for held in self.held if held.started_at is None and not held.is_over]

    @property
    def running(self) -> list[Held]:
        return [held for held in self.held if held.started_at is not None and not held.is_over]

    def hear(self, cancelled: Sequence[str]) -> None:
        """Learn with a heartbeat which runs are to be stopped."""
        for held in self.held:
            held.is_cancelled = held.is_cancelled or held.run_id in cancelled

    def hand_back(self, held: Held) -> None:
        """Give an admitted run back unstarted, or end it there when it was cancelled."""
        held.is_over = True
        kind = Kind.CANCELLED if held.is_cancelled else Kind.GIVEN_BACK
        self.words.append(Word(held, kind, self.clock.now))

    def may_begin(self, held: Held) -> bool:
        """Say whether it would pass the start gate."""
        is_late = self.clock.now - held.asked_at > held.admission.start_within
        return not (held.is_cancelled or is_late)

    def begin(self, held: Held) -> bool:
        """Let a body begin, if it passes the start gate."""
        if not self.may_begin(held):
            self.hand_back(held)
            return False
        held.started_at = self.clock.now
        self.words.append(Word(held, Kind.STARTED, self.clock.now))
        return True

    def end(self, held: Held, way: str) -> None:
        """Let a body end in one of the ways."""
        held.is_over = True
        kind, facts = _outcome(held.admission, way)
        self.words.append(Word(held, kind, self.clock.now, facts))

    def reports(self) -> list[Report]:
        """Return all that is to be recorded, with times on this process's clock."""
        return [
            Report(
                word.held.run_id,
                word.held.token,
                word.kind,
                self.clock.monotonic(word.at),
                **word.facts,
            )
            for word in self.words
        ]


def _outcome(admission: Admission, way: str) -> tuple[Kind, dict[str, Any]]:
    if way == "succeeds":
        return Kind.SUCCEEDED, {"result": json.dumps({"token": admission.token}).encode()}
    if way == "terminated":
        return Kind.CANCELLED, {"cause": "terminated"}
    name = ERRORS[way]
    delay = delay_after(admission.context["policy"], admission.attempt, (name,), None)
    facts = {"error_type": name, "delay": delay, "cause": "" if way == "raises" else way}
    return Kind.FAILED if delay is None else Kind.RETRYING, facts
