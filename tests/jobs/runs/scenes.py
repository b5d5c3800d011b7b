"""Runs that a worker has started."""

from typing import Any

from fleet import Admission, Kind
from jobs.models import Owner, Run
from tests.jobs.scenes import admitted, living_worker, recorded, submitted


def begun(owner: Owner, **options: Any) -> tuple[Run, Admission]:
    """Return a run that a worker has started, as its row is, and its admission."""
    [run] = submitted(owner, **options)
    at = admitted(living_worker(), run)
    assert recorded(at, Kind.STARTED) == "running"
    run.refresh_from_db()
    return run, at
