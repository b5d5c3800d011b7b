"""Follows the tasks' log while it grows: which bodies are alive, and in which worker."""

import json
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from tests.judge.log import TaskEvent


@dataclass
class Bodies:
    """The log read up to now; `look` reads on. Counting anew each time would take too long."""

    path: Path
    alive: dict[tuple[str | None, int | None, int], TaskEvent] = field(default_factory=dict)
    starts: dict[str | None, list[TaskEvent]] = field(default_factory=lambda: defaultdict(list))
    ended: list[TaskEvent] = field(default_factory=list)
    ended_runs: set[str | None] = field(default_factory=set)
    seen: list[TaskEvent] = field(default_factory=list)
    _read_to: int = 0

    def look(self) -> "Bodies":
        """Read on to the last whole line."""
        with self.path.open("rb") as log:
            log.seek(self._read_to)
            text = log.read()
        text = text[: text.rfind(b"\n") + 1]
        for line in text.splitlines(keepends=True):
            # A line that was cut by a SIGKILL has another one behind it.
            whole = line[line.rfind(b'{"event":"') :]
            self._note(TaskEvent(position=self._read_to, **json.loads(whole)))
            self._read_to += len(line)
        return self

    def of(self, worker: int) -> list[TaskEvent]:
        """Return the starts of the bodies that are alive in the children of a worker."""
        return [event for event in self.alive.values() if event.parent_pid == worker]

    def most_at_once(self, runs: set[str]) -> int:
        """Return how many bodies of these runs were alive together at most, by their order."""
        again, most = Bodies(self.path), 0
        for event in self.seen:
            again._note(event)
            most = max(most, sum(start.run in runs for start in again.alive.values()))
        return most

    def _note(self, event: TaskEvent) -> None:
        self.seen.append(event)
        body = (event.run, event.token, event.pid)
        match event.event:
            case "start":
                self.alive[body] = event
                self.starts[event.run].append(event)
            case "end":
                self.alive.pop(body, None)
                self.ended.append(event)
                self.ended_runs.add(event.run)
            case "killed":
                dead = [
                    body
                    for body, start in self.alive.items()
                    if event.pid in (start.pid, start.parent_pid)
                ]
                for body in dead:
                    del self.alive[body]
