"""A world with something in every part of the pages: for looks, contrasts and axe."""

from datetime import timedelta
from typing import Any

from fleet import Kind
from jobs.core.sql import now
from jobs.models import Job, Owner, Run, WebhookEndpoint
from jobs.owners.limits import limit_owner, pause_owner
from jobs.runs.recording import record
from jobs.system.notices.endpoints import make_endpoint
from tests.jobs.admin.conftest import stored_job
from tests.jobs.broken import ended_run
from tests.jobs.scenes import (
    admitted,
    keep_beating,
    living_worker,
    recorded,
    silence,
    submitted,
    told,
)
from tests.jobs.system.rollups.minutes import minutes_ago, recorded_at, rolled_up
from tests.jobs.windows_world import calendar_of, freeze, window

LONG = "shop.network.errors.VeryLongNameOfAnErrorThatDoesNotFitAPhone"


def tell(acme: Owner) -> dict[str, Any]:
    """Make it; return what addresses need: a worker, a job, a calendar and its window."""
    northwind = Owner.objects.create(slug="northwind", weight=1)
    contoso = Owner.objects.create(slug="contoso-with-a-rather-long-name", weight=2)
    worker = living_worker("w1@a-host-with-a-rather-long-name.example")
    # It beats no more, and a slow machine takes longer than a lease for this story.
    silence(worker, seconds=-3_600)
    keep_beating()
    for at in range(2, 40):
        for owner, kind in ((acme, Kind.SUCCEEDED), (northwind, Kind.SUCCEEDED)):
            _ended(worker, owner, at, kind)
        if at % 7 == 0:
            error = LONG if at % 2 else "builtins.TimeoutError"
            message = "no answer <b>within</b> 5 s " * 3
            facts = {"error_type": error, "error_message": message}
            _ended(worker, northwind, at, Kind.FAILED, **facts)
    rolled_up()
    for run in submitted(acme, 6)[:2]:
        recorded(admitted(worker, run), Kind.STARTED)
    submitted(northwind, 4)
    nights = calendar_of(contoso, "nights", needs_approval=True)
    asked = window(nights, opens_in=3_600, seconds=600, reason="Least traffic")
    freeze(nights, opens_in=172_800, seconds=129_600)
    window(calendar_of(acme, "noon"), opens_in=7_200, seconds=1_800)
    submitted(contoso, 3)
    submitted(acme, 5)
    pause_owner(northwind, reason="audit of the year")
    limit_owner(contoso, max_running=2)
    silence(living_worker("w2@here"), seconds=120)
    others = [living_worker(f"{queue}@here", queues=(queue,)) for queue in ("system", "notices")]
    for alive in others:
        silence(alive, seconds=-3_600)
    keys = {"calendar": nights.pk, "window": asked.pk, "webhook": _webhook(acme).pk}
    return {"worker": worker, "job": _nightly(acme).pk, **keys}


def _webhook(acme: Owner) -> WebhookEndpoint:
    """Return an endpoint that fails; beside it are one that is disabled and one for all owners."""
    given = {"name": "ci", "url": f"https://ci.example/{'long-' * 30}", "events": ["run.ended"]}
    endpoint = make_endpoint({**given, "states": ["failed"], "tasks": ["tests.add"]}, owner=acme)
    found = endpoint.endpoint
    run = Run.objects.filter(owner=acme).first()
    assert run is not None
    for number, state in enumerate(("delivered", "failed", "waiting")):
        tries = [[now().timestamp(), 500, "no answer within 10 s " * 3, 10_000]]
        found.deliveries.create(
            owner=acme,
            event_id=f"evt_{number}",
            event_type="run.ended",
            event_at=now(),
            data={"run": str(run.pk), "state": "failed"},
            state=state,
            attempt_count=number + 1,
            next_at=now(),
            tries=[] if state == "delivered" else tries,
        )
    WebhookEndpoint.objects.filter(pk=found.pk).update(failure_count=3, retry_at=now())
    off = make_endpoint(given, owner=acme).endpoint
    reason = "no answer within 10 s"
    WebhookEndpoint.objects.filter(pk=off.pk).update(is_active=False, disabled_reason=reason)
    make_endpoint({**given, "events": ["submission.ended"]}, owner=None)
    return found


def _nightly(acme: Owner) -> Job:
    """Return a job whose last run failed."""
    when = {"schedule": "cron", "cron": "30 2 * * *", "zone": "Europe/Berlin"}
    job = stored_job(acme, "nightly-inventory", name="Inventory of all switches", **when)
    for days in range(1, 15):
        error = {"error_type": "builtins.TimeoutError"} if days in (1, 9) else {}
        ended_run(job, "failed" if error else "succeeded", minutes=1_440 * days, **error)
    return job


def _ended(worker: Any, owner: Owner, at: int, kind: Kind, **facts: Any) -> Run:
    [run] = submitted(owner, max_attempts=1)
    admission = admitted(worker, run)
    record([told(admission, kind, **facts)])
    recorded_at(run, minutes_ago(at) + timedelta(seconds=5))
    return run
