"""Scenes of runs over the API."""

from typing import Any

from fleet import Kind
from jobs.models import Owner, Run
from tests.jobs.scenes import admitted, living_worker, recorded, submitted

ADD: dict[str, Any] = {"task": "tests.add", "arguments": {"x": 1, "y": 2}}


def started(owner: Owner, **options: Any) -> tuple[Run, Any]:
    """Return a run that a worker executes, and its admission."""
    [run] = submitted(owner, **options)
    admission = admitted(living_worker(), run)
    recorded(admission, Kind.STARTED)
    return run, admission


def failed(owner: Owner, error: str = "builtins.ValueError", **options: Any) -> Run:
    """Return a run that failed in its only attempt."""
    run, admission = started(owner, max_attempts=1, **options)
    recorded(admission, Kind.FAILED, error_type=error, error_message="no")
    run.refresh_from_db()
    return run
