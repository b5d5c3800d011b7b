"""What the scenes of all actions know of each: its body, and the state that it applies to.

The table of faces, both isolation matrices and the browser use them. A new action needs an entry in
BODIES if its body has required fields, and in READY if a fresh row does not have the state that it
applies to. A noun that can be created needs one in NEW.
"""

from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import partial
from typing import Any, Final

from django.contrib.auth.models import User

from jobs.calendars import approvals
from jobs.calendars.ical_feed import new_secret
from jobs.core.sql import now
from jobs.core.states import State
from jobs.owners.limits import pause_owner
from jobs.recurring.pause import pause_jobs
from jobs.runs.cancellation import cancel_runs
from jobs.runs.recording import move
from jobs.system.draining import drain_worker
from jobs.system.notices.endpoints import change_endpoint
from jobs.system.notices.mails import change_subscription
from tests.jobs.api.matrix import rows

UNTIL: Final = "2199-01-01T06:00:00Z"
BODIES: Final[Mapping[str, dict[str, Any]]] = {
    "change_owner": {"name": "Acme"},
    "change_run": {"priority": 3},
    "change_webhook": {"name": "Acme"},
    "change_mail_subscription": {"name": "Acme"},
    "change_calendar": {"name": "Acme"},
    "change_member": {"role": "operator"},
    "pause_job": {"until": UNTIL},
    "move_run": {"to": "tests.add"},
    "backfill_job": {"start": "2026-01-01T00:00:00Z", "end": "2026-01-01T01:00:00Z"},
    "resize_submission": {"sizes": "1, 100%"},
}
"""By action and noun."""
NEW: Final[Mapping[str, dict[str, Any]]] = {
    "calendar": {"name": "nights"},
    "mail_subscription": {
        "name": "ops",
        "addresses": ["ops@acme.example"],
        "events": ["run.ended"],
        "language": "en",
    },
    "member": {"user": "newcomer", "role": "viewer"},
    "owner": {"slug": "initech"},
    "token": {"name": "robot", "scopes": ["read"]},
    "webhook": {"name": "ci", "url": "https://ci.example/", "events": ["run.ended"]},
}
"""The body of a new row, by noun."""
READY: Final[Mapping[str, Callable[[Any], Any]]] = {
    "look_run": rows.let_run,
    "enable_mail_subscription": lambda mail: change_subscription(mail, {"is_active": False}),
    "enable_webhook": lambda webhook: change_endpoint(webhook, {"is_active": False}),
    "retry_run": lambda run: cancel_runs([run.pk]),
    "retry_submission": lambda submission: move(
        list(submission.runs.values_list("pk", flat=True)), to=State.FAILED
    ),
    "override_run": lambda run: rows.window_of(run.owner),
    "override_submission": lambda submission: rows.window_of(submission.owner),
    "pause_submission": rows.give_waves,
    "resume_submission": partial(rows.give_waves, state="stopped"),
    "release_submission": rows.give_waves,
    "approve_submission": partial(rows.give_waves, needs_approval=True, state="waiting"),
    "resize_submission": rows.give_waves,
    "resume_owner": pause_owner,
    "resume_job": lambda job: pause_jobs([job.pk], until=now() + timedelta(days=1)),
    "revoke_window": lambda window: approvals.approve(
        window, actor=User.objects.get_or_create(username="sue", is_superuser=True)[0]
    ),
    "undrain_worker": drain_worker,
    "unpublish_calendar": new_secret,
}
"""Bring a row into the state that the action applies to."""


def as_typed(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return a body as the fields of a form."""
    sent: dict[str, Any] = {}
    for name, value in body.items():
        if name in ("until", "start", "end"):
            day, _, clock = value.removesuffix("Z").partition("T")
            sent |= {f"{name}_0": day, f"{name}_1": clock}
        elif name == "addresses":
            sent[name] = ", ".join(value)
        else:
            sent[name] = value
    return sent
