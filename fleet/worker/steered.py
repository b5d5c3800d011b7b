"""The end of an attempt whose task snoozed, discarded or cancelled its run. Pure."""

from __future__ import annotations

import time

from celery.exceptions import Ignore, Retry

from fleet.contract import Kind, Report
from fleet.steering import CANCELLED, DISCARDED, SNOOZED, Discard, Snooze, Steer
from fleet.worker.failures import failure


def steered(run_id: str, token: int, steer: Steer) -> tuple[Report, Exception]:
    """Return the report of an attempt for us, and the exception that ends it for Celery."""
    if isinstance(steer, Snooze):
        report = Report(
            *(run_id, token, Kind.RETRYING, time.monotonic()), delay=steer.seconds, cause=SNOOZED
        )
        return report, Retry(message=str(steer), exc=steer, when=steer.seconds)
    if isinstance(steer, Discard):
        return failure(run_id, token, steer, "", cause=DISCARDED), steer
    # Ignore: Celery stores no result. The main process announces the cancel.
    report = failure(run_id, token, steer, "", cause=CANCELLED)
    return report._replace(kind=Kind.CANCELLED), Ignore(str(steer))
