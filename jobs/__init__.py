"""Jobs for many owners, on Celery: submit, and every run has a durable history."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from jobs.core.version import __version__ as __version__

if TYPE_CHECKING:
    from fleet.steering import Cancel, Discard, Snooze
    from jobs.catalog.context import RunContext, current_run
    from jobs.catalog.ends import RunEnd, SubmissionEnd
    from jobs.catalog.hooks import on_run_end, on_submission_end
    from jobs.catalog.registry import job
    from jobs.catalog.secret import Secret
    from jobs.celery_setup import celery_app, setup_celery
    from jobs.core.errors import CheckpointError, StaleAttempt
    from jobs.definitions.upsert import delete_jobs, upsert_jobs
    from jobs.forecast.will_it_fit import will_it_fit
    from jobs.recurring.backfill import backfill
    from jobs.rollouts.waves import Waves
    from jobs.runs.submission import asubmit, asubmit_many, submit, submit_many

__all__ = [
    "Cancel",
    "CheckpointError",
    "Discard",
    "RunContext",
    "RunEnd",
    "Secret",
    "Snooze",
    "StaleAttempt",
    "SubmissionEnd",
    "Waves",
    "__version__",
    "asubmit",
    "asubmit_many",
    "backfill",
    "celery_app",
    "current_run",
    "delete_jobs",
    "job",
    "on_run_end",
    "on_submission_end",
    "setup_celery",
    "submit",
    "submit_many",
    "upsert_jobs",
    "will_it_fit",
]

_HOMES = {
    "Cancel": "fleet.steering",
    "CheckpointError": "jobs.core.errors",
    "Discard": "fleet.steering",
    "RunContext": "jobs.catalog.context",
    "RunEnd": "jobs.catalog.ends",
    "Secret": "jobs.catalog.secret",
    "Snooze": "fleet.steering",
    "StaleAttempt": "jobs.core.errors",
    "SubmissionEnd": "jobs.catalog.ends",
    "Waves": "jobs.rollouts.waves",
    "asubmit": "jobs.runs.submission",
    "asubmit_many": "jobs.runs.submission",
    "backfill": "jobs.recurring.backfill",
    "celery_app": "jobs.celery_setup",
    "current_run": "jobs.catalog.context",
    "delete_jobs": "jobs.definitions.upsert",
    "job": "jobs.catalog.registry",
    "on_run_end": "jobs.catalog.hooks",
    "on_submission_end": "jobs.catalog.hooks",
    "setup_celery": "jobs.celery_setup",
    "submit": "jobs.runs.submission",
    "submit_many": "jobs.runs.submission",
    "upsert_jobs": "jobs.definitions.upsert",
    "will_it_fit": "jobs.forecast.will_it_fit",
}


def _refuse_other_fleet() -> None:
    """Exit if a package `fleet` of the project hides ours; `fleet` does the same for `jobs`."""
    ours = Path(__file__).resolve().parent.parent / "fleet"
    found = find_spec("fleet")
    places = list(found.submodule_search_locations or [found.origin or ""]) if found else []
    if ours.is_dir() and places and ours not in [Path(place).resolve() for place in places]:
        raise SystemExit(
            f"The package `fleet` in {places[0]} hides Fairshift's: rename it. A project may have"
            " neither a package nor an app named `jobs` or `fleet` (docs/start/own-project.md)."
        )


_refuse_other_fleet()

if not TYPE_CHECKING:  # a type checker would take any name for one of ours
    from jobs.core.faces import face

    __getattr__, __dir__ = face(__name__, _HOMES)
