"""The way of hints from the broker to a worker, on which everything may happen to them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from fleet import AdmissionRequest
from fleet.keys import queue_key
from fleet.transport.envelope import parsed

QUEUE: Final = "jobs"


@dataclass(frozen=True, order=True)
class OnItsWay:
    """A hint: whose run, for which admission."""

    run_id: str
    token: int
    task: str


class Network:
    """Hints that the broker was given: some are still there, others on their way."""

    def __init__(self, channel: Any) -> None:
        self._channel = channel
        self.hints: list[OnItsWay] = []

    def collect(self) -> list[OnItsWay]:
        """Bring all that Redis holds on its way; return all that is."""
        bodies = self._channel.client.hvals(queue_key(QUEUE, "body"))
        headers = [parsed(body)["headers"] for body in bodies]
        self.hints += sorted(
            OnItsWay(each["id"], each["fairshift"]["token"], each["task"]) for each in headers
        )
        self._channel.queue_purge(QUEUE)
        return self.hints

    def taken(self, places: Sequence[int] | None = None, *, keep: bool = False) -> list[OnItsWay]:
        """Take the hints at these places, in this order, or all; with `keep` they arrive again."""
        hints = self.collect()
        places = range(len(hints)) if places is None else places
        wanted = [hints[place % len(hints)] for place in places if hints]
        chosen = list(dict.fromkeys(wanted))
        if not keep:
            for hint in chosen:
                self.hints.remove(hint)
        return chosen

    def flush(self) -> None:
        """Empty Redis: what it knew of owners and of its epoch is gone, too."""
        self._channel.client.flushdb()


def asks(hints: list[OnItsWay]) -> list[AdmissionRequest]:
    """Return what a worker asks on account of hints: once for each run."""
    return [
        AdmissionRequest(run_id, task)
        for run_id, task in {hint.run_id: hint.task for hint in hints}.items()
    ]
