"""The admin of Fairshift: one module a model, on the stock Django admin."""

from jobs.admin import (
    audit,
    backfill,
    job,
    missed,
    owner,
    run,
    scheduler,
    submission,
    target,
    worker,
)

__all__ = [
    "audit",
    "backfill",
    "job",
    "missed",
    "owner",
    "run",
    "scheduler",
    "submission",
    "target",
    "worker",
]
