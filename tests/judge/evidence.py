"""The evidence of a scene, indexed once for all rules."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from math import inf

from tests.judge.log import SubmitEvent, TaskEvent
from tests.judge.rows import AttemptRow, RunRow


@dataclass
class Start:
    """A body that began, and where in the log it ended (None: no end was logged)."""

    event: TaskEvent
    end: TaskEvent | None = None

    @property
    def position(self) -> int:
        return self.event.position

    @property
    def token(self) -> int | None:
        return self.event.token


@dataclass
class Submit:
    """A submitter's facts about one submit; `status` is "ok", "failed" or "unknown"."""

    key: str
    status: str = "unknown"
    count: int | None = None
    confirmed_count: int = 0  # ids that its submitter was given, also those not written down
    prepares: bool = False
    ids: set[str] = field(default_factory=set)
    rolled_back: set[str] = field(default_factory=set)

    @property
    def is_impossible(self) -> bool:
        """No line says that it failed, and yet it cannot have been committed."""
        return self.status == "unknown" and self.prepares and not self.ids

    def note(self, event: SubmitEvent) -> None:
        match event.event:
            case "intend":
                self.count, self.prepares = event.count, event.prepares
                # Tried again after a failure: from here on it may be committed.
                if self.status == "failed":
                    self.status = "unknown"
            case "prepared":
                self.ids.update(event.ids)
            case "ok":
                self.status, self.confirmed_count = "ok", event.total
                self.ids.update(event.ids)
                self.rolled_back -= set(event.ids)
            case "failed":
                # A caller may try again under the same key; what it had in hand before is void.
                if self.status != "ok":
                    self.status = "failed"
                    self.rolled_back |= self.ids | set(event.ids)
                    self.ids = set()


class Evidence:
    """Events and rows by run; run ids are lower-case text throughout."""

    def __init__(
        self,
        *,
        task_events: Iterable[TaskEvent],
        submit_events: Iterable[SubmitEvent],
        runs: Iterable[RunRow],
        attempts: Iterable[AttemptRow],
    ) -> None:
        self.runs = {run.id: run for run in runs}
        self.attempts: dict[str, list[AttemptRow]] = defaultdict(list)
        for attempt in attempts:
            self.attempts[attempt.run_id].append(attempt)
        for rows in self.attempts.values():
            rows.sort(key=lambda row: (row.token, row.number))
        self.submits: dict[str, Submit] = {}
        for event in submit_events:
            self.submits.setdefault(event.key, Submit(event.key)).note(event)
        self.starts: dict[str, list[Start]] = defaultdict(list)
        self._disturbed: dict[int, list[tuple[float, float]]] = defaultdict(list)
        self._index(sorted(task_events, key=lambda event: event.position))

    def attempts_of(self, run_id: str) -> list[AttemptRow]:
        """Return the attempts of a run in the order of their tokens."""
        return self.attempts.get(run_id, [])

    def starts_of(self, run_id: str) -> list[Start]:
        """Return the starts of a run in the order in which they happened."""
        return self.starts.get(run_id, [])

    def was_disturbed(self, start: Start, *, after: float, before: float) -> bool:
        """Tell whether the start's process or its parent was frozen or dead in that stretch."""
        return any(
            begin < before and end > after
            for pid in (start.event.pid, start.event.parent_pid)
            if pid is not None
            for begin, end in self._disturbed.get(pid, [])
        )

    def _index(self, events: list[TaskEvent]) -> None:
        open_starts: dict[tuple[str, int | None, int], Start] = {}
        for event in events:
            if event.event in ("frozen", "killed"):
                self._disturbed[event.pid].append((event.position, inf))
            elif event.event == "thawed":
                spans = self._disturbed[event.pid]
                spans[:] = [(begin, min(end, event.position)) for begin, end in spans]
            elif event.run is None:
                continue
            elif event.event == "start":
                start = Start(event)
                self.starts[event.run].append(start)
                open_starts[event.run, event.token, event.pid] = start
            elif begun := open_starts.pop((event.run, event.token, event.pid), None):
                begun.end = event
