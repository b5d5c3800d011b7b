"""What is known of each run from outside: who asked for what, and what workers were told."""

import json
from dataclasses import dataclass, field
from math import inf
from typing import Any
from uuid import UUID

from jobs.core import sql
from tests.judge.checker import judge
from tests.judge.log import SubmitEvent, TaskEvent
from tests.judge.rows import AttemptRow, HistoryEntry, RunRow
from tests.judge.verdict import Verdict

_RUNS = """
SELECT id, state, token, attempt_count, max_attempts, lock_key, blocked_by, ended_at, history,
    convert_from(result, 'UTF8') AS result
FROM jobs_run ORDER BY id
"""
_ATTEMPTS = """
SELECT run_id::text AS run_id, token, number, outcome, started_at, ended_at
FROM jobs_attempt ORDER BY run_id, token
"""


@dataclass(eq=False)
class Story:
    """One committed run. Times are those of the fake clock."""

    id: UUID
    owner: str
    lock: str
    max_attempts: int
    due_at: float
    deadline_at: float
    token: int = 0
    """The newest that was handed out."""
    ended: set[int] = field(default_factory=set)
    """Tokens whose end a worker reported and was believed."""
    is_over: bool = False
    """It has ended, and nobody has asked for it again."""
    start_count: int = 0
    """Bodies that began under tokens newer than `asked_after`."""
    asked_after: int = 0
    """Its newest token when an operator last asked for it."""

    def reopen(self, *, now: float) -> None:
        self.is_over, self.start_count, self.asked_after = False, 0, self.token
        self.due_at = min(self.due_at, now)
        if self.deadline_at <= now:
            self.deadline_at = inf


class Log:
    """What tasks and submitters would have written down, for the judge."""

    def __init__(self) -> None:
        self._tasks: list[TaskEvent] = []
        self._submits: list[SubmitEvent] = []

    def submitted(self, ids: list[UUID], *, is_committed: bool) -> None:
        key, texts = str(len(self._submits)), tuple(map(str, ids))
        self._submits.append(SubmitEvent(event="intend", key=key, count=len(ids)))
        event = "ok" if is_committed else "failed"
        self._submits.append(SubmitEvent(event=event, key=key, ids=texts, total=len(ids)))

    def body(
        self, event: str, body: int, *, run: str | None = None, token: int | None = None
    ) -> None:
        """Note that a body starts, returns, raises, is killed or is frozen."""
        outcome = None if event in ("start", "killed", "frozen") else event
        self._tasks.append(
            TaskEvent(
                event="end" if outcome else event,
                position=len(self._tasks),
                pid=body,
                run=run,
                token=token,
                outcome=outcome,
            )
        )

    def verdict(self, runs: list[dict[str, Any]]) -> Verdict:
        """Return what the judge says of these rows, which are all, and of their attempts."""
        return judge(
            task_events=self._tasks,
            submit_events=self._submits,
            runs=[_run_row(run) for run in runs],
            attempts=[AttemptRow(**row) for row in sql.query(_ATTEMPTS)],
        )


def read_runs() -> list[dict[str, Any]]:
    """Return all rows of runs, by plain SQL."""
    return sql.query(_RUNS)


def _run_row(run: dict[str, Any]) -> RunRow:
    return RunRow(
        id=str(run["id"]),
        state=run["state"],
        token=run["token"],
        attempt_count=run["attempt_count"],
        history=tuple(HistoryEntry(*entry) for entry in json.loads(run["history"])),
        outcome_token=json.loads(run["result"])["token"] if run["result"] else None,
    )
