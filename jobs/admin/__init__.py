"""The admin of Fairshift: one module a model, on the stock Django admin."""

from jobs.admin import (
    audit,
    backfill,
    calendar,
    job,
    missed,
    owner,
    run,
    scheduler,
    submission,
    target,
    target_group,
    window,
    worker,
)

__all__ = [
    "audit",
    "backfill",
    "calendar",
    "job",
    "missed",
    "owner",
    "run",
    "scheduler",
    "submission",
    "target",
    "target_group",
    "window",
    "worker",
]
