"""The values that pass between a worker and the application that owns the runs. Pure.

`fleet` knows no database: `config/celery.py` hands it an `Application`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final, NamedTuple
from uuid import UUID

HEADER: Final = "fairshift"
"""The message header that names a call's owner; after admission, the attribute a task may read."""

# Priorities are 0 to 9, higher first, except on Celery's Redis transport, which has 0 first: there
# it is HIGHEST less the priority.
HIGHEST: Final = 9


def is_hint(headers: Mapping[str, Any]) -> bool:
    """Say whether these are the headers of a hint: a message that only its row can start."""
    facts = headers.get(HEADER)
    return isinstance(facts, Mapping) and "run" in facts


def is_admitted(facts: Any) -> bool:
    """Say whether these facts are from an admission, which replaces a hint's header."""
    return isinstance(facts, Mapping) and {"run", "token", "attempt"} <= facts.keys()


class Hint(NamedTuple):
    """A message to publish: it names the user's task and the run, and has no payload.

    `token` is that of its next admission; run and token identify the hint. `priority` is 0 to 9,
    higher first. `job` is the id of the job whose row admits a run without a row of its own. `lock`
    is a name of the owner's choice: one message with it runs at a time. `delay_seconds` delays its
    delivery; below 0, it counts as time that it has waited. After `not_after_seconds` it is not
    delivered.
    """

    run_id: str
    task: str
    queue: str
    owner: str
    submission: int | None = None
    attempt: int = 1
    priority: int = 5
    token: int = 1
    job: int | None = None
    lock: str = ""
    delay_seconds: float = 0.0
    not_after_seconds: float | None = None


class BrokerUnavailable(ConnectionError):
    """The broker did not answer in time; how many messages it has is unknown."""


class AdmissionRequest(NamedTuple):
    """A request to admit one hint that a worker holds.

    `token` is that of the admission, by the message; 0: any. With `job`, the run has no row, and
    the other fields come from the message, too: `owner` is charged for it, `submission` is its
    backfill. Without `is_known`, the worker does not have the task, and asks whether another live
    worker has.
    """

    run_id: str
    task: str
    job: int | None = None
    owner: str = ""
    submission: int | None = None
    attempt: int = 1
    token: int = 0
    is_known: bool = True

    @property
    def key(self) -> str:
        """The key of its run in a worker."""
        return _key(self.run_id, self.token, is_kept=self.job is None)


class Admission(NamedTuple):
    """A run that this worker may start, under a token of its own.

    `body` is a Celery protocol 2 body as JSON bytes; `context` must be JSON: the task may read it.
    Limits are in seconds. It must start within `start_within`, and within `closes_within` because
    of its calendars; the child checks both. `is_limited`: others may wait for its cap or lock.
    `records_start_first`: commit the start before the body begins. `next_hint` is the hint of the
    next attempt, for a run without a row.
    """

    run_id: str
    token: int
    attempt: int
    body: bytes
    context: Mapping[str, Any]
    soft_time_limit: float | None = None
    time_limit: float | None = None
    start_within: float = 30.0
    closes_within: float | None = None
    is_limited: bool = False
    records_start_first: bool = False
    headers: Mapping[str, Any] = MappingProxyType({})
    next_hint: Hint | None = None

    @property
    def is_kept(self) -> bool:
        """Whether the run has a row."""
        return self.next_hint is None

    @property
    def key(self) -> str:
        """The key of the run in a worker."""
        return _key(self.run_id, self.token, is_kept=self.is_kept)

    def facts(self) -> dict[str, Any]:
        """Return the facts that replace the hint's header."""
        return {
            **self.context,
            "run": self.run_id,
            "token": self.token,
            "attempt": self.attempt,
            "key": self.key,
        }


def _key(run_id: str, token: int, *, is_kept: bool) -> str:
    """Return a run's id if it has a row, else the hint's id.

    So a message that names a job cannot replace a run with a row.
    """
    return run_id if is_kept else f"{run_id}:{token}"


class Refusal(StrEnum):
    """Why a hint was not admitted."""

    GONE = "gone"  # no such run, or not queued any more: drop the hint
    WAITS = "waits"  # it must wait, and its row brings another hint: drop this one
    BUSY = "busy"  # it must wait, and has no row to bring another hint: give this one back


BUSY_ROW: Final = "busy"
"""In place of a run's state: its row is locked or has just changed. Report again."""

NOT_BEGUN: Final = "not begun"
"""The cause of the end of an attempt that did not begin, although its start is recorded. It does
not count."""


class NotBegun(Exception):
    """The task has not begun, although its start is recorded: it was too late."""


class Kind(StrEnum):
    """What became of an attempt."""

    STARTED = "started"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    RETRYING = "retrying"
    CANCELLED = "cancelled"
    GIVEN_BACK = "given back"


class LogChunk(NamedTuple):
    """Lines that an attempt has logged, as they are stored under a key; `first_at` is Unix time."""

    first_line: int
    line_count: int
    first_at: float
    key: int
    data: bytes


class Report(NamedTuple):
    """An event of an admitted run, to be recorded under its token.

    `at` is this process's `time.monotonic()`; `delay` is seconds until the next attempt;
    `cause` says more than the kind does ("child lost", "time limit"); `log` is what the attempt
    has not yet written of its log.
    """

    run_id: str
    token: int
    kind: Kind
    at: float
    started_at: float | None = None
    result: bytes | None = None
    error_type: str = ""
    error_message: str = ""
    traceback: str = ""
    delay: float | None = None
    cause: str = ""
    log: Sequence[LogChunk] = ()


class Asked(NamedTuple):
    """The question where an attempt is."""

    run_id: str
    token: int


class Unseen(StrEnum):
    """Why a worker cannot say where an attempt is."""

    NOT_BEGUN = "not begun"  # its process has not read it yet
    OTHER_POOL = "other pool"  # only processes of the prefork pool can say
    SILENT = "silent"  # its process writes no stack


class Look(NamedTuple):
    """Where an attempt is: the stacks of its process, what that takes, and why there are none."""

    run_id: str
    token: int
    pid: int | None = None
    stack: str = ""
    memory_bytes: int | None = None
    cpu_seconds: float | None = None
    """The CPU time of the process since it was forked."""
    unseen: Unseen | None = None
    process_state: str = ""
    """Why its process is silent, such as "stopped"."""


class Orders(NamedTuple):
    """The application's answer to a heartbeat: orders for the worker."""

    cancel: Sequence[str] = ()
    """The ids of its runs that it is to cancel."""
    look: Sequence[Asked] = ()
    """The attempts of which it is to say where they are."""
    drains: bool = False
    """It takes no more runs, and ends those that it has."""
    is_cut_off: bool = False
    """Redis answers other workers, and has owed this one an answer for too long."""


@dataclass(frozen=True, slots=True)
class Node:
    """A booted worker. `tasks` are those it knows, without Celery's own; None if unknown.

    `redis_silent_seconds`: for how long Redis has owed it an answer.
    """

    id: UUID
    hostname: str
    pid: int
    pool: str
    slots: int
    queues: Sequence[str]
    tasks: Sequence[str] | None = None
    redis_silent_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Application:
    """What a worker needs from the application. Calls that use a server are made in threads.

    `admit` answers every request by its key; one of an unknown task gets a refusal. `publish` sends
    hints of runs without rows, or raises. `record` returns the state of each run, BUSY_ROW for a
    locked one, and omits runs whose token is out of date. `beat` gets the runs that the worker
    holds and returns what it is to do. `leave` ends the worker's row. `prime` restores owners and
    hints in queues that were emptied or fell back to an older copy. `note_look` gets the answer to
    a question of `Orders.look`. `close` drops the thread's
    connection after an error. One run whose row is damaged ends, and `admit` and `record` do the
    others.
    In the process of the task, `begin_log` gets the task's name, the facts of an attempt and the
    arguments before its body, and `end_log` returns what its report brings of its log. Neither
    raises.
    `plain_queues` have no durable runs; a worker of other queues needs a pool that can stop tasks,
    unless `allows_other_pools`. `child_niceness`, 0 to 19, is added in a pool's processes. A worker
    of `system_queue` has no remote control; others follow commands that read, and those named in
    `remote_commands`. With `hides_values`, log lines of durable runs have no results and no texts
    of errors. Celery's lines about tasks whose names begin with `quiet_prefix` are hidden below the
    level of a warning.
    """

    admit: Callable[[UUID, Sequence[AdmissionRequest]], Mapping[str, Admission | Refusal]]
    record: Callable[[Sequence[Report]], Mapping[str, str]]
    publish: Callable[[Sequence[Hint]], None]
    beat: Callable[[Node, Sequence[str]], Orders]
    leave: Callable[[UUID], None]
    prime: Callable[[], None]
    close: Callable[[], None]
    note_look: Callable[[Look], None]
    requires_row: Callable[[str], bool]
    retry_delay: Callable[[Mapping[str, Any], int, Sequence[str], float | None], float | None]
    encode_result: Callable[[Any], bytes]
    leave_clean: Callable[[], None]
    begin_log: Callable[[str, Mapping[str, Any], Sequence[Any], Mapping[str, Any]], None]
    end_log: Callable[[], Sequence[LogChunk]]
    heartbeat_seconds: float = 10.0
    lease_seconds: float = 30.0
    cancel_grace_seconds: float = 10.0
    plain_queues: Collection[str] = ()
    allows_other_pools: bool = False
    child_niceness: int = 0
    system_queue: str = ""
    remote_commands: Collection[str] = ()
    hides_values: bool = False
    quiet_prefix: str = ""
