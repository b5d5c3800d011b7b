"""Jobs for many owners, on Celery: submit, and every run has a durable history."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jobs.catalog import job
    from jobs.context import current_run
    from jobs.submission import asubmit, asubmit_many, submit, submit_many

__all__ = ["asubmit", "asubmit_many", "current_run", "job", "submit", "submit_many"]

_HOMES = {
    "asubmit": "jobs.submission",
    "asubmit_many": "jobs.submission",
    "current_run": "jobs.context",
    "job": "jobs.catalog",
    "submit": "jobs.submission",
    "submit_many": "jobs.submission",
}


def __getattr__(name: str) -> Any:
    """Import on first use: models may not be loaded before Django has loaded its apps."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
