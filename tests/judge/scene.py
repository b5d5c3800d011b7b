"""A small world in which everything goes as promised, told run by run.

Each act keeps rows and logs in step, so that a test can tell a clean story and then plant
one defect by hand.
"""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

from tests.judge.checker import judge
from tests.judge.log import SubmitEvent, TaskEvent
from tests.judge.rows import AttemptRow, HistoryEntry, RunRow
from tests.judge.verdict import Verdict

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
WORKER = 100


class Scene:
    """Rows, logs and a clock that ticks with every act."""

    def __init__(self) -> None:
        self.task_events: list[TaskEvent] = []
        self.submit_events: list[SubmitEvent] = []
        self.runs: dict[str, RunRow] = {}
        self.attempts: list[AttemptRow] = []
        self._ids = (f"run-{number}" for number in count(1))
        self._pids = count(WORKER + 1)
        self._ticks = count(1)

    def submit(self, key: str, *, runs: int = 1) -> list["Story"]:
        """Commit a submit of `count` runs and log it as ok."""
        stories = [Story(self, next(self._ids)) for _ in range(runs)]
        ids = [story.id for story in stories]
        self.say("intend", key, count=runs)
        self.say("ok", key, ids=tuple(ids), total=len(ids))
        return stories

    def run(self, key: str = "acme-1") -> "Story":
        """Commit a submit of one run."""
        return self.submit(key)[0]

    def say(self, event: str, key: str, **facts: Any) -> None:
        """Let the submitter write a line."""
        self.submit_events.append(SubmitEvent(event=event, key=key, **facts))

    def log(self, event: str, *, pid: int, **facts: Any) -> None:
        """Let a task, or a test that disturbs a process, write a line."""
        position = len(self.task_events)
        self.task_events.append(TaskEvent(event=event, position=position, pid=pid, **facts))

    def now(self) -> datetime:
        return NOON + timedelta(seconds=next(self._ticks))

    def new_pid(self) -> int:
        return next(self._pids)

    def change(self, story: "Story", **columns: Any) -> None:
        """Plant other values in a run's row."""
        self.runs[story.id] = replace(self.runs[story.id], **columns)

    def change_attempt(self, place: int, **columns: Any) -> None:
        """Plant other values in the attempt at that place of the list."""
        self.attempts[place] = replace(self.attempts[place], **columns)

    def judged(self) -> Verdict:
        return judge(
            task_events=self.task_events,
            submit_events=self.submit_events,
            runs=self.runs.values(),
            attempts=self.attempts,
        )

    def found(self) -> set[str]:
        """The kinds of which the judge finds something."""
        return set(self.judged().findings)

    def facts(self, kind: str) -> str:
        """Return the judge's findings of one kind."""
        return "; ".join(finding.fact for finding in self.judged().findings[kind])


class Story:
    """One run, act by act."""

    def __init__(self, scene: Scene, run_id: str) -> None:
        self.scene, self.id = scene, run_id
        self.pid = self.number = 0
        self.started_at: datetime | None = None
        scene.runs[run_id] = RunRow(id=run_id, state="new", token=0, attempt_count=0, history=())
        self.move("queued")

    @property
    def row(self) -> RunRow:
        return self.scene.runs[self.id]

    def move(self, state: str, **columns: Any) -> "Story":
        entry = HistoryEntry(state, self.scene.now().timestamp(), "told")
        history = (*self.row.history, entry)
        self.scene.change(self, state=state, history=history, **columns)
        return self

    def admit(self) -> "Story":
        if self.row.state == "retrying":
            self.move("queued")
        self.pid, self.started_at = self.scene.new_pid(), None
        self.number += 1
        row = self.row
        return self.move("admitted", token=row.token + 1, attempt_count=row.attempt_count + 1)

    def accept(self) -> "Story":
        """Admit and let the pool accept it, in a fresh process; the body has not begun."""
        self.admit().move("running")
        self.started_at = self.scene.now()
        return self

    def start(self) -> "Story":
        """Admit and start, in a fresh process."""
        self.accept()._log("start")
        return self

    def succeed(self) -> "Story":
        self._log("end", outcome="returned")
        return self._close("succeeded", then="succeeded", outcome_token=self.row.token)

    def fail(self, *, again: bool = False) -> "Story":
        self._log("end", outcome="raised ValueError")
        return self._close(*("retrying", "retrying") if again else ("failed", "failed"))

    def lose(self, outcome: str = "worker lost", *, again: bool = True) -> "Story":
        """End the process without a log line."""
        return self._close(outcome, then="retrying" if again else "failed")

    def _close(self, outcome: str, then: str, **columns: Any) -> "Story":
        self.scene.attempts.append(
            AttemptRow(
                run_id=self.id,
                token=self.row.token,
                number=max(self.number, 1),
                outcome=outcome,
                started_at=self.started_at,
                ended_at=self.scene.now(),
            )
        )
        return self.move(then, **columns)

    def _log(self, event: str, **facts: Any) -> None:
        self.scene.log(
            event,
            pid=self.pid,
            parent_pid=WORKER,
            run=self.id,
            attempt=self.number,
            token=self.row.token,
            **facts,
        )
