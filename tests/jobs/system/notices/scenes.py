"""What scenes of webhooks and mails are made of."""

from datetime import timedelta
from typing import Any

from django.db.models import F

from fleet import Kind
from jobs.models import (
    EventType,
    MailDigest,
    MailSubscription,
    Owner,
    Run,
    WebhookDelivery,
    WebhookEndpoint,
)
from jobs.system.notices import rounds
from jobs.system.notices.delivery import deliver
from jobs.system.notices.endpoints import MadeEndpoint, make_endpoint
from jobs.system.notices.mails import make_subscription, send_mail
from tests.jobs.scenes import admitted, living_worker, recorded, submitted
from tests.receivers import Receiver

RUNS = [EventType.RUN_ENDED]


class Notices:
    """Rounds of notices, the messages that they have sent, and a receiver."""

    def __init__(self, settings: Any, ears: Receiver) -> None:
        self.ears = ears
        self.messages: list[dict[str, Any]] = []
        self._settings = settings
        self.allow()

    def allow(self, *others: Receiver, **given: Any) -> None:
        """Allow-list receivers of this machine, and let nothing wait, unless a setting says so."""
        self._settings.FAIRSHIFT = {
            **self._settings.FAIRSHIFT,
            "HTTP_ALLOWED_HOSTS": tuple(one.place for one in (self.ears, *others)),
            "WEBHOOK_BACKOFF_SECONDS": 0,
            "MAIL_QUIET_SECONDS": 0,
            **given,
        }

    def carry_out(self) -> list[str]:
        """Carry out the messages that wait, as a worker would; return the outcomes."""
        done = []
        while self.messages:
            message = self.messages.pop(0)
            if "delivery" in message:
                done.append(deliver(message["delivery"], is_probe=message["is_probe"]))
            else:
                done.append(send_mail(message["digest"]))
        return done

    def round(self) -> list[str]:
        """Let one round store events and send messages, carry these out; return the outcomes."""
        collect()
        return self.carry_out()


def webhook(
    owner: Owner | None, to: Receiver | str, *, actor: Any = None, **given: Any
) -> MadeEndpoint:
    """Make an endpoint that asks for ends of runs, unless it says otherwise; return its key too."""
    url = to if isinstance(to, str) else to.url
    given = {"name": "scene", "url": url, "events": RUNS, **given}
    return make_endpoint(given, owner=owner, actor=actor)


def endpoint(owner: Owner | None, to: Receiver | str, **given: Any) -> WebhookEndpoint:
    """Make an endpoint as `webhook` does."""
    return webhook(owner, to, **given).endpoint


def subscribe(owner: Owner | None, *, actor: Any = None, **given: Any) -> MailSubscription:
    """Make a subscription that asks for ends of runs, unless it says otherwise."""
    given = {"name": "ops", "events": RUNS, "addresses": ["ops@acme.example"], **given}
    return make_subscription(given, owner=owner, actor=actor)


def states(of: WebhookEndpoint) -> list[str]:
    """Return the states of an endpoint's deliveries, in the order of their events."""
    return list(of.deliveries.order_by("id").values_list("state", flat=True))


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


def later(seconds: float = 3_600) -> None:
    """Let time pass for everything that waits."""
    span = timedelta(seconds=seconds)
    WebhookDelivery.objects.update(next_at=F("next_at") - span)
    WebhookEndpoint.objects.update(retry_at=F("retry_at") - span)
    MailDigest.objects.update(next_at=F("next_at") - span, sent_at=F("sent_at") - span)
