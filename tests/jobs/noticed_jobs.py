"""Jobs that an alarm, a webhook and a mail subscription name."""

from typing import Final

from jobs.core.sql import now
from jobs.models import (
    Job,
    JobAlarm,
    MailDigest,
    MailSubscription,
    WebhookDelivery,
    WebhookEndpoint,
)

NAMING: Final = (JobAlarm, WebhookEndpoint, WebhookDelivery, MailSubscription, MailDigest)


def notice(job: Job) -> None:
    """Give a job an alarm, an endpoint with a delivery, and a subscription with a digest."""
    JobAlarm.objects.create(job=job, kind="failing")
    asked = {"owner": job.owner, "job": job, "name": "scene", "events": ["job.failing"]}
    endpoint = WebhookEndpoint.objects.create(
        **asked, url="https://hooks.example/", secret=b"k", bound_to=job.owner.slug
    )
    WebhookDelivery.objects.create(
        endpoint=endpoint,
        owner=job.owner,
        event_id="evt_scene",
        event_type="job.failing",
        event_at=now(),
        data={},
        state="waiting",
        next_at=now(),
    )
    wanted = MailSubscription.objects.create(**asked, addresses=["ops@acme.example"])
    MailDigest.objects.create(subscription=wanted, subject="j1", change="failing", next_at=now())


def naming_counts() -> list[int]:
    """Return how many rows of each table name a job, or a row that does.

    Deliveries of deleted endpoints are left to retention.
    """
    rows = [model.objects.all() for model in NAMING]
    rows[NAMING.index(WebhookDelivery)] = WebhookDelivery.objects.filter(endpoint__deleted_at=None)
    return [each.count() for each in rows]
