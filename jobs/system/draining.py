"""Drain a worker: it takes no more runs, ends those that it has, and stays.

The worker learns of it by its next heartbeat, so no remote control is needed.
"""

from __future__ import annotations

from django.db import transaction
from django.db.models.functions import Now

from jobs.models import AuditEntry, Worker
from jobs.models.verbs import Actor


def drain_worker(worker: Worker, *, reason: str = "", actor: Actor = None) -> bool:
    """Have a worker take no more runs, until `undrain_worker` or its end.

    Messages that wait in it go back to their queues. Repeating it changes nothing. Returns False
    for a worker that has stopped or was lost. Raises OptionError for a long reason.
    """
    return _set(worker, drains=True, reason=reason, actor=actor)


def undrain_worker(worker: Worker, *, reason: str = "", actor: Actor = None) -> bool:
    """Have a draining worker take runs again. Repeating it changes nothing.

    Returns False for a worker that has stopped or was lost. Raises OptionError for a long reason.
    """
    return _set(worker, drains=False, reason=reason, actor=actor)


def _set(worker: Worker, *, drains: bool, reason: str, actor: Actor) -> bool:
    with transaction.atomic():
        alive = Worker.objects.beating().filter(pk=worker.pk)
        changed = alive.filter(draining_since__isnull=drains).update(
            draining_since=Now() if drains else None
        )
        if changed:
            action = "drain worker" if drains else "undrain worker"
            AuditEntry.write(action, on=worker, actor=actor, reason=reason)
        return bool(changed) or alive.exists()
