"""A rollout as the tasks' log and its row show it: what G30 promises."""

import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from tests.judge import read_task_events
from tests.judge.log import TaskEvent

STATE = "SELECT state FROM jobs_rollout"
# An admission holds the lock that a stop waits for: its time is before the stop's.
_BEFORE_STOP = """
SELECT r.id::text FROM jobs_run r JOIN jobs_rollout o ON o.submission_id = r.submission_id
WHERE r.admitted_at <= o.changed_at
"""

Query = Callable[[str], Sequence[Sequence[Any]]]


def assert_nothing_starts(log: Path, query: Query, *, seconds: float) -> None:
    """Fail if a body begins, while the rollout is stopped, that was admitted after the stop."""
    [[state]] = query(STATE)
    assert state == "stopped"
    position = len(read_task_events(log))
    time.sleep(seconds)
    begun = {one.run for one in read_task_events(log)[position:] if one.event == "start"}
    late = begun - {run_id for [run_id] in query(_BEFORE_STOP)}
    assert not late, f"{len(late)} began after the stop"


def assert_in_waves(events: list[TaskEvent], ids: list[str], counts: list[int]) -> None:
    """Fail unless all bodies of a wave follow all of the wave before; `ids` are in order."""
    spans: list[tuple[int, int]] = []
    start = 0
    for count in counts:
        wave = set(ids[start : start + count])
        start += count
        mine = [event.position for event in events if event.run in wave]
        spans.append((min(mine), max(mine)))
    print(f"waves of {counts} runs, at lines {spans}")
    for (_, last), (first, _) in pairwise(spans):
        assert last < first
