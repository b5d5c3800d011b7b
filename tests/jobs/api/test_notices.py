"""Webhooks and mail subscriptions over the API: what is wrong is named, and versions."""

from jobs.core import barrier
from jobs.core.sql import now
from jobs.models import Owner, WebhookEndpoint
from tests.jobs.api.conftest import ROOT, Caller, post, problem
from tests.jobs.api.job_scenes import change

HOOK = {"name": "ci", "url": "https://ci.example/", "events": ["run.ended"]}
MAILS = {"name": "ops", "addresses": ["ops@acme.example"], "events": ["job.failing"]}


def test_bad_fields_are_named(caller: Caller, acme: Owner) -> None:
    """Addresses, languages and events are checked; nothing changes."""
    client = caller(acme)
    path = f"/mail-subscriptions/{post(client, '/mail-subscriptions', MAILS).json()['id']}"
    for given in ({"addresses": ["nobody"]}, {"language": "xx"}, {"events": ["run.begun"]}):
        [field] = given
        assert field in problem(change(client, "patch", path, given), 422, "invalid")["field"]
    assert client.get(f"{ROOT}{path}").json()["addresses"] == MAILS["addresses"]


def test_deliveries_make_no_version(caller: Caller, acme: Owner) -> None:
    """What they write moves by itself; a webhook that they have disabled is another version."""
    client = caller(acme)
    made = post(client, "/webhooks", HOOK)
    path = f"{ROOT}/webhooks/{made.json()['id']}"
    barrier.lower()
    WebhookEndpoint.objects.update(failure_count=3, retry_at=now(), last_delivered_at=now())
    again = client.get(path, headers={"If-None-Match": made["ETag"]})
    assert (again.status_code, again.content) == (304, b"")
    barrier.lower()
    WebhookEndpoint.objects.update(is_active=False, disabled_at=now(), disabled_reason="410")
    assert client.get(path)["ETag"] != made["ETag"]
