"""The models of jobs, one file an idea."""

from jobs.models.audit import AuditEntry
from jobs.models.job import HistoryPolicy, Job, ScheduleKind
from jobs.models.outbox import Outbox
from jobs.models.owner import Membership, Owner, Role
from jobs.models.run import Attempt, AttemptOutcome, Run
from jobs.models.submission import IdempotencyKey, Progress, Submission
from jobs.models.target import Target
from jobs.models.worker import Worker

__all__ = [
    "Attempt",
    "AttemptOutcome",
    "AuditEntry",
    "HistoryPolicy",
    "IdempotencyKey",
    "Job",
    "Membership",
    "Outbox",
    "Owner",
    "Progress",
    "Role",
    "Run",
    "ScheduleKind",
    "Submission",
    "Target",
    "Worker",
]
