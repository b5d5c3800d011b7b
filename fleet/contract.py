"""What passes between a worker and the application that owns the runs.

`fleet` knows no database: `config/celery.py` hands it an `Application`, and these are the values
that go in and out. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final, NamedTuple
from uuid import UUID

HEADER: Final = "fairshift"
"""The message header that says whose a call is; after admission, the attribute a task may read."""

# Priorities: 0 to 9, higher first, everywhere but on Celery's Redis transport, where 0 is
# first: there it is HIGHEST less the priority.
HIGHEST: Final = 9


def is_hint(headers: Mapping[str, Any]) -> bool:
    """Say whether a message with these headers is a hint: one that only its row can start."""
    facts = headers.get(HEADER)
    return isinstance(facts, Mapping) and "run" in facts


def is_admitted(facts: Any) -> bool:
    """Say whether this is what an admission put in the place of a hint's header."""
    return isinstance(facts, Mapping) and {"run", "token", "attempt"} <= facts.keys()


class Hint(NamedTuple):
    """A message to be published: it names the user's task and the run, and carries no payload.

    `token` is the one that its next admission hands out: run and token are its identity.
    `priority` is 0 to 9, higher first. `job` is the id of the job whose row admits it, for a run
    that has no row of its own. `lock` is the owner's own word, as in `acting_for`: the queue lets
    one message with it run at a time. It is not delivered before `delay_seconds` have passed; below
    0, it goes where it would stand if it had waited in the queue for so long. It is not
    delivered any more when `not_after_seconds` have passed.
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


class AdmissionRequest(NamedTuple):
    """One hint that a worker holds and wants admitted.

    With `job`, the run has no row: what else is known of it stands in the message alone. `owner`
    is whom the queue charges for it, `submission` the backfill that it is part of. Without
    `is_known` the worker has no such task: it asks whether another live worker has.
    """

    run_id: str
    task: str
    job: int | None = None
    owner: str = ""
    submission: int | None = None
    attempt: int = 1
    token: int = 1
    is_known: bool = True

    @property
    def key(self) -> str:
        """Its name among all that a worker asks for and holds."""
        return _key(self.run_id, self.token, is_kept=self.job is None)


class Admission(NamedTuple):
    """A run that this worker may start, under a token that no one else has.

    `body` is a Celery protocol 2 body as JSON bytes; `context` must be JSON: it travels to
    the pool child, where the task may read it. Limits are in seconds. `closes_within` is the part
    of `start_within` that its calendars leave. Past either not even a child that has it begins.
    `is_limited`: a cap or a lock may wait for its end. `records_start_first`: that it starts is
    committed before its body begins. `next_hint` is that of the next attempt, for a run that has
    no row to bring it.
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
        """Whether a row keeps what becomes of it."""
        return self.next_hint is None

    @property
    def key(self) -> str:
        """Its name among all that a worker asks for and holds."""
        return _key(self.run_id, self.token, is_kept=self.is_kept)

    def facts(self) -> dict[str, Any]:
        """Return what takes the place of the hint's header."""
        return {
            **self.context,
            "run": self.run_id,
            "token": self.token,
            "attempt": self.attempt,
            "key": self.key,
        }


def _key(run_id: str, token: int, *, is_kept: bool) -> str:
    """Of a run with a row its id: the row knows one attempt. Else that of the message.

    So no message that names a job can take the place of a run that a row stands for.
    """
    return run_id if is_kept else f"{run_id}:{token}"


class Refusal(StrEnum):
    """Why a hint was not admitted."""

    GONE = "gone"  # no such run, or not queued any more: drop the hint
    WAITS = "waits"  # its row remembers what keeps it, and brings another hint: drop this one
    BUSY = "busy"  # not now, and no row of it would bring it again: give the hint back


BUSY_ROW: Final = "busy"
"""In place of a run's state, when somebody holds or has just changed its row: report it again."""


NOT_BEGUN: Final = "not begun"
"""The cause of an attempt's end that did nothing, although its start is recorded: none is spent."""


class NotBegun(Exception):
    """The task has not begun, although its start is recorded: its moment had passed."""


class Kind(StrEnum):
    """What became of an attempt."""

    STARTED = "started"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    RETRYING = "retrying"
    CANCELLED = "cancelled"
    GIVEN_BACK = "given back"


class Report(NamedTuple):
    """One thing that happened to an admitted run, to be recorded under its token.

    `at` is this process's `time.monotonic()`; `delay` is seconds until the next attempt;
    `cause` says more than the kind does ("worker process lost", "time limit").
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


@dataclass(frozen=True, slots=True)
class Node:
    """A booted worker, as its heartbeat describes it.

    `tasks`: those that it knows, without Celery's own; None when it does not say.
    """

    id: UUID
    hostname: str
    pid: int
    pool: str
    slots: int
    queues: Sequence[str]
    tasks: Sequence[str] | None = None


@dataclass(frozen=True, slots=True)
class Application:
    """What a worker asks of the application; what may wait for a server, in a thread of its own.

    `admit` answers every request by its key, one of an unknown task with a refusal; `publish` sends
    hints of runs that have no row, or raises; `record` returns the state that each run has now,
    BUSY_ROW for one that is held elsewhere, and leaves out runs whose token was out of date;
    `beat` is told which runs the worker holds and returns those that are to be cancelled;
    `leave` ends the worker's row; `prime` tells queues that were emptied, or fell back to an older
    copy, what they have forgotten; `close` drops the thread's connection after an error.
    No durable run is sent to `plain_queues`: a worker of others is refused on a pool that cannot
    stop a task, unless `allows_other_pools`. A pool's processes are nicer than the worker's main
    one by `child_niceness`, 0 to 19. A worker of `system_queue` follows no command by message;
    others follow those that read, and Celery's commands named in `remote_commands`.
    """

    admit: Callable[[UUID, Sequence[AdmissionRequest]], Mapping[str, Admission | Refusal]]
    record: Callable[[Sequence[Report]], Mapping[str, str]]
    publish: Callable[[Sequence[Hint]], None]
    beat: Callable[[Node, Sequence[str]], Sequence[str]]
    leave: Callable[[UUID], None]
    prime: Callable[[], None]
    close: Callable[[], None]
    requires_row: Callable[[str], bool]
    retry_delay: Callable[[Mapping[str, Any], int, Sequence[str], float | None], float | None]
    encode_result: Callable[[Any], bytes]
    leave_clean: Callable[[], None]
    heartbeat_seconds: float = 10.0
    lease_seconds: float = 30.0
    cancel_grace_seconds: float = 10.0
    plain_queues: Collection[str] = ()
    allows_other_pools: bool = False
    child_niceness: int = 0
    system_queue: str = ""
    remote_commands: Collection[str] = ()
