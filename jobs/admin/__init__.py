"""The admin of Fairshift: one module a model, on the stock Django admin."""

from jobs.admin import (
    audit,
    backfill,
    calendar,
    celery_pages,
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
    "celery_pages",
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
