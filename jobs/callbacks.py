"""Telling Celery of runs that ended where no worker was there to tell it.

A run that asked for a result, an errback or a place in a chord must not leave them waiting
when it is cancelled, expires, or is lost with its worker for the last time.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from uuid import UUID

from billiard.exceptions import WorkerLostError
from celery import current_app
from celery.app.task import Context
from kombu.utils import json

from jobs.models import Run
from jobs.payloads import open_bytes
from jobs.states import State

logger = logging.getLogger(__name__)


def tell_celery(run_ids: Iterable[UUID]) -> None:
    """Mark these ended runs in the result backend, so that errbacks and chords go on.

    Runs for whose end nobody asked are left out. As in Celery, errbacks hear of failures and
    not of what was revoked. Called after the commit; trouble is logged, because the run's own
    end stands.
    """
    for run in Run.objects.filter(id__in=list(run_ids)).exclude(options={}):
        try:
            _tell(run)
        except Exception:
            logger.exception("could not tell Celery that run %s ended", run.id)


def _tell(run: Run) -> None:
    _args, _kwargs, embed = json.loads(open_bytes(run.payload, key=run.payload_key))
    # Celery looks into `delivery_info` before it sends an errback.
    facts = {"id": str(run.id), "task": run.task, "delivery_info": {}}
    request = Context({**facts, **run.options, **embed})
    is_kept = not run.options.get("ignore_result", True)
    if run.state == State.FAILED:
        reason = WorkerLostError(run.error_message or "the worker was lost")
        current_app.backend.mark_as_failure(
            str(run.id), reason, request=request, store_result=is_kept
        )
    else:
        current_app.backend.mark_as_revoked(
            str(run.id), reason=run.state, request=request, store_result=is_kept
        )
