"""Jobs and owners that webhooks and mail subscriptions name are deleted in the admin, too."""

import pytest
from django.test import Client
from django.urls import reverse

from jobs import upsert_jobs
from jobs.models import AuditEntry, Job, MailSubscription, Owner, WebhookDelivery, WebhookEndpoint
from tests.jobs.noticed_jobs import notice

pytestmark = pytest.mark.django_db
CALL = {"key": "a", "task": "tests.add", "arguments": {"x": 1, "y": 2}}


@pytest.mark.parametrize("is_list", [False, True], ids=["page", "list"])
def test_a_job_is_deleted_with_what_names_it(as_root: Client, acme: Owner, is_list: bool) -> None:
    """Each webhook and subscription is audited; deliveries are left to retention."""
    upsert_jobs(acme, [CALL])
    job = Job.objects.select_related("owner").get()
    notice(job)
    if is_list:
        chosen = {"action": "delete_selected", "_selected_action": [job.pk], "post": "yes"}
        answer = as_root.post(reverse("admin:jobs_job_changelist"), chosen)
    else:
        address = reverse("admin:jobs_job_delete", args=[job.pk])
        assert "permission" not in as_root.get(address).content.decode()
        answer = as_root.post(address, {"post": "yes"})
    assert answer.status_code == 302, answer.content.decode()
    assert not Job.objects.exists() and not WebhookEndpoint.objects.exists()
    assert not MailSubscription.objects.exists() and WebhookDelivery.objects.count() == 1
    acts = AuditEntry.objects.order_by("action").values_list("actor_name", "action")
    assert list(acts) == [
        ("root", "delete"),
        ("root", "delete mail subscription"),
        ("root", "delete webhook"),
    ]


def test_an_owner_is_deleted_with_its_webhooks(as_root: Client, acme: Owner) -> None:
    """The page that asks does not list their deliveries: there may be millions."""
    upsert_jobs(acme, [CALL])
    notice(Job.objects.select_related("owner").get())
    WebhookEndpoint.objects.update(job=None)
    MailSubscription.objects.update(job=None)
    Job.objects.get().delete()
    address = reverse("admin:jobs_owner_delete", args=[acme.pk])
    assert "evt_scene" not in as_root.get(address).content.decode()
    assert as_root.post(address, {"post": "yes"}).status_code == 302
    assert not Owner.objects.exists() and not WebhookEndpoint.objects.exists()
    assert not MailSubscription.objects.exists() and WebhookDelivery.objects.count() == 1
