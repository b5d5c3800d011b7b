"""The models, one file a noun."""

from jobs.models.audit import AuditEntry
from jobs.models.calendar import (
    Attachment,
    Calendar,
    Decision,
    EndBehaviour,
    Opening,
    Window,
    WindowDecision,
    WindowEffect,
)
from jobs.models.inbox import InboxMark, JobImport
from jobs.models.job import HistoryPolicy, Job, MisfirePolicy, OverlapPolicy, ScheduleKind
from jobs.models.outbox import Outbox
from jobs.models.owner import Membership, Owner, Role
from jobs.models.recurring import (
    Backfill,
    Cursor,
    Leader,
    Missed,
    MissReason,
    SentEntry,
    Tick,
)
from jobs.models.run import Attempt, AttemptOutcome, Run, WindowPolicy
from jobs.models.submission import IdempotencyKey, Progress, Submission
from jobs.models.target import Target, TargetGroup
from jobs.models.worker import Worker

__all__ = [
    "Attachment",
    "Attempt",
    "AttemptOutcome",
    "AuditEntry",
    "Backfill",
    "Calendar",
    "Cursor",
    "Decision",
    "EndBehaviour",
    "HistoryPolicy",
    "IdempotencyKey",
    "InboxMark",
    "Job",
    "JobImport",
    "Leader",
    "Membership",
    "MisfirePolicy",
    "MissReason",
    "Missed",
    "Opening",
    "Outbox",
    "OverlapPolicy",
    "Owner",
    "Progress",
    "Role",
    "Run",
    "ScheduleKind",
    "SentEntry",
    "Submission",
    "Target",
    "TargetGroup",
    "Tick",
    "Window",
    "WindowDecision",
    "WindowEffect",
    "WindowPolicy",
    "Worker",
]
