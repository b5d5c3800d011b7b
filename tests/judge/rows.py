"""The judge's view of the database: plain rows, however they were read."""

from dataclasses import dataclass
from datetime import datetime

TERMINAL = frozenset({"succeeded", "failed", "cancelled", "expired"})
# A worker holds it: the try in progress has a token and no row of its own yet.
ACTIVE = frozenset({"admitted", "running", "cancelling"})
# The cause of an end that did nothing: the attempt is not spent.
NOT_BEGUN = "not begun"
# Outcomes of attempts that did not end by themselves: the run's lost leases.
LOST_LEASE = frozenset({"worker lost", "child lost", "time limit"})


@dataclass(frozen=True)
class HistoryEntry:
    """A recorded move: the state entered, PostgreSQL's time in epoch seconds, and the cause."""

    state: str
    at: float
    cause: str | None = None


@dataclass(frozen=True, kw_only=True)
class RunRow:
    """A row of the runs table."""

    id: str
    state: str
    token: int  # of the newest attempt; 0 before the first
    attempt_count: int
    history: tuple[HistoryEntry, ...]
    outcome_token: int | None = None  # of the attempt whose outcome stands, when the row says
    key: str | None = None  # the submitter's key, when the row carries it


@dataclass(frozen=True, kw_only=True)
class AttemptRow:
    """A row of the attempts table: one ended try."""

    run_id: str
    token: int
    number: int
    outcome: str
    started_at: datetime | None = None
    ended_at: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class Rule:
    """A job's schedule, as its row has it."""

    schedule: str
    interval_minutes: int | None = None
    phase: int | None = None
    shard: int | None = None
    cron: str = ""
    zone: str = ""
    once_at: datetime | None = None
    start_at: datetime | None = None
    end_at: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class TriggeredRow:
    """A run that was made because its job was due then; `key` is the job's."""

    key: str
    run_id: str
    due_at: datetime


@dataclass(frozen=True, kw_only=True)
class MissedRow:
    """A record of due times that were not run; both ends are included."""

    key: str
    first_at: datetime
    last_at: datetime
    count: int
    reason: str


@dataclass(frozen=True, kw_only=True)
class AdmittedRow:
    """One admission of a run, and the token that it gave."""

    run_id: str
    token: int
    at: datetime
