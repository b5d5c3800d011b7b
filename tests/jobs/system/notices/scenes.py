"""What scenes of webhooks are made of."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from fleet import Kind
from jobs.core.sql import now
from jobs.models import EventType, MailDigest, Owner, Run, WebhookDelivery, WebhookEndpoint
from jobs.system.notices import rounds
from jobs.system.notices.delivery import deliver
from jobs.system.notices.endpoints import make_endpoint
from jobs.system.notices.mails import send_mail
from tests.jobs.scenes import admitted, living_worker, recorded, submitted
from tests.receivers import Receiver

RUNS = [EventType.RUN_ENDED]


def allow(settings: Any, *receivers: Receiver, **given: Any) -> None:
    """Allow-list receivers of this machine, and let nothing wait."""
    settings.FAIRSHIFT = {
        **settings.FAIRSHIFT,
        "HTTP_ALLOWED_HOSTS": tuple(one.place for one in receivers),
        "WEBHOOK_BACKOFF_SECONDS": 0,
        "MAIL_QUIET_SECONDS": 0,
        **given,
    }


def endpoint(
    owner: Owner | None, to: Receiver | str, *, events: Any = RUNS, **given: Any
) -> WebhookEndpoint:
    """Make an endpoint that asks for ends of runs, unless it says otherwise."""
    url = to if isinstance(to, str) else to.url
    return make_endpoint(
        {"name": "scene", "url": url, "events": events, **given}, owner=owner
    ).endpoint


def end_runs(owner: Owner, count: int = 1, kind: Kind = Kind.SUCCEEDED, **facts: Any) -> list[Run]:
    """Submit runs and let them end."""
    runs = submitted(owner, count, max_attempts=1)
    worker = living_worker()
    for run in runs:
        admission = admitted(worker, run)
        recorded(admission, Kind.STARTED)
        recorded(admission, kind, **facts)
    return runs


def collect() -> None:
    """Let one round store events, as the system worker's does, and look for alarms."""
    rounds._looked_at[0] = 0.0
    rounds.notify()


def carry_out(messages: list[dict[str, Any]]) -> list[str]:
    """Carry out the messages that rounds have sent, as a worker would; return the outcomes."""
    done = []
    while messages:
        message = messages.pop(0)
        if "delivery" in message:
            done.append(deliver(message["delivery"], is_probe=message["is_probe"]))
        else:
            done.append(send_mail(message["digest"]))
    return done


def later(seconds: float = 3_600) -> None:
    """Let time pass for everything that waits."""
    span = timedelta(seconds=seconds)
    for row in WebhookDelivery.objects.all():
        WebhookDelivery.objects.filter(pk=row.pk).update(next_at=row.next_at - span)
    for row in WebhookEndpoint.objects.exclude(retry_at=None):
        WebhookEndpoint.objects.filter(pk=row.pk).update(retry_at=row.retry_at - span)
    for digest in MailDigest.objects.all():
        sent = digest.sent_at and digest.sent_at - span
        MailDigest.objects.filter(pk=digest.pk).update(next_at=digest.next_at - span, sent_at=sent)


def wait_until(condition: Callable[[], bool]) -> None:
    assert condition(), now()
