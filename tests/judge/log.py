"""The logs outside the system: what tasks did, and what submitters asked for.

One JSON object a line, one write() a line on a file opened with O_APPEND: on a local file
system lines of several processes do not mix, their order in the file is the order in which
they happened, and a written line outlives the SIGKILL of its writer. Judgements about order
use the position in the file; times are for the reader (and may be skewed by a test).
"""

import json
import os
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LINE_LIMIT = 4096
IDS_PER_LINE = 80

# Every line opens like this, and no JSON string can hold it: its quotes would be escaped.
_OPENING = '{"event":"'
_AT_OPENING = re.compile(f"(?={re.escape(_OPENING)})")
# The kernel gives an orphan the machine's first process as parent, and a parent may die
# as soon as it has forked: so it notes itself before the fork, and the child takes that over.
_pids = {"parent": os.getppid()}
os.register_at_fork(
    before=lambda: _pids.update(forking=os.getpid()),
    after_in_child=lambda: _pids.update(parent=_pids["forking"]),
)


@dataclass(frozen=True, kw_only=True)
class TaskEvent:
    """A line of the task log; `position` orders it among all lines of the file."""

    event: str  # "start", "end", "frozen", "thawed", "killed"
    position: int
    pid: int
    parent_pid: int | None = None
    run: str | None = None  # None: called as a plain Celery task, without a row
    attempt: int | None = None
    token: int | None = None
    task: str = ""
    outcome: str | None = None  # of an end: "returned" or "raised <class>"
    wall: float = 0.0
    monotonic: float = 0.0


@dataclass(frozen=True, kw_only=True)
class SubmitEvent:
    """A line of the submitters' log about the submit that its submitter calls `key`."""

    event: str  # "intend", "prepared", "ok", "failed"
    key: str
    count: int = 1
    prepares: bool = False
    ids: tuple[str, ...] = ()
    total: int = 0  # ids of the whole call, which may take several lines
    error: str = ""


class Log:
    """A file that any number of processes append lines to."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)

    def append(self, event: str, **facts: Any) -> None:
        """Append one line; ValueError when it reaches 4096 bytes, OSError when cut short."""
        line = json.dumps({"event": event, **facts}, separators=(",", ":")).encode() + b"\n"
        if len(line) >= LINE_LIMIT:
            raise ValueError(f"log line of {len(line)} bytes, limit {LINE_LIMIT}: {line[:80]!r}")
        # Opened for each line: a task may close every descriptor, fork, or never come back.
        descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            if os.write(descriptor, line) != len(line):
                raise OSError(f"line cut short in {self.path}")
        finally:
            os.close(descriptor)


def clocks_now() -> dict[str, float]:
    """Return the readings that a line has of this process's clocks."""
    return {"wall": time.time(), "monotonic": time.monotonic()}


class TaskLog(Log):
    """Written by tasks (start, end) and by tests that disturb their processes."""

    def start(
        self,
        *,
        run: str | None,
        attempt: int | None,
        token: int | None,
        task: str,
        clocks: Mapping[str, float] | None = None,
    ) -> None:
        """Note that the body of `task` begins in this process, now or at these `clocks`."""
        at = dict(clocks or {})
        self._append("start", run=run, attempt=attempt, token=token, task=task, **at)

    def end(
        self, *, run: str | None, attempt: int | None, token: int | None, task: str, outcome: str
    ) -> None:
        """Note that the body ended by itself: outcome "returned" or "raised <class>"."""
        self._append("end", run=run, attempt=attempt, token=token, task=task, outcome=outcome)

    def disturb(self, pid: int, *, how: str) -> None:
        """Note that `pid` is about to be "frozen", "thawed" or "killed": call it first."""
        if how not in ("frozen", "thawed", "killed"):
            raise ValueError(f"how must be frozen, thawed or killed, not {how!r}")
        self._append(how, pid=pid, parent_pid=None)

    def _append(self, event: str, **facts: Any) -> None:
        own = {"pid": os.getpid(), "parent_pid": _pids["parent"]}
        self.append(event, **own | clocks_now() | facts)


class SubmitLog(Log):
    """Written by submitters. A submit with no `ok` or `failed` line is unknown."""

    def intend(self, key: str, *, count: int = 1, prepares: bool = False) -> None:
        """Note, before anything is done, that `key` will submit `count` runs.

        A key may be tried again once it failed, not while its outcome is unknown. With
        `prepares`, the submitter promises a `prepared` line before its COMMIT:
        without that line nothing can have been committed, and the judge knows it.
        """
        self.append("intend", key=key, count=count, prepares=prepares)

    def prepared(self, key: str, ids: Iterable[object]) -> None:
        """Note the ids in hand, before COMMIT."""
        self._append_ids("prepared", key, ids)

    def ok(self, key: str, ids: Iterable[object]) -> None:
        """Note that the submit is committed, and its ids."""
        self._append_ids("ok", key, ids)

    def failed(self, key: str, *, ids: Iterable[object] = (), error: str = "") -> None:
        """Note that the submit was refused or rolled back, and the ids it had in hand."""
        self._append_ids("failed", key, ids, error=error[:200])

    def _append_ids(self, event: str, key: str, ids: Iterable[object], **facts: str) -> None:
        texts = [str(run_id) for run_id in ids]
        for first in range(0, max(len(texts), 1), IDS_PER_LINE):
            part = texts[first : first + IDS_PER_LINE]
            self.append(event, key=key, ids=part, total=len(texts), **facts)


def read_task_events(path: str | os.PathLike[str]) -> list[TaskEvent]:
    """Return the lines of a task log in the order in which they were written."""
    return [TaskEvent(position=position, **facts) for position, facts in _lines(path)]


def read_submit_events(path: str | os.PathLike[str]) -> list[SubmitEvent]:
    """Return the lines of a submitters' log in the order in which they were written."""
    return [
        SubmitEvent(**facts | {"ids": tuple(facts.get("ids", ()))}) for _, facts in _lines(path)
    ]


def _lines(path: str | os.PathLike[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield each whole line with its position; a fragment is skipped.

    A SIGKILL can cut a write at a page boundary. Its writer is dead, so the fragment stands
    for a thing that did not happen; the next writer's line follows it without a break.
    """
    lines = Path(path).read_text(errors="replace").split("\n")
    pieces = (piece for line in lines for piece in _AT_OPENING.split(line) if piece)
    for position, piece in enumerate(pieces):
        try:
            yield position, json.loads(piece)
        except json.JSONDecodeError:
            if not (piece.startswith(_OPENING) or _OPENING.startswith(piece)):
                raise ValueError(f"{path} holds what is not a log line: {piece[:80]!r}") from None
