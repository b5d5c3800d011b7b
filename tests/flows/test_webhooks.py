"""Webhooks of real runs to real receivers, over real workers, beside slow and broken ones."""

import pytest
from django.conf import settings
from django.test import override_settings
from standardwebhooks.webhooks import Webhook

from jobs import submit_many
from jobs.management.stack import programs
from jobs.models import Owner, WebhookDelivery
from jobs.system.notices.endpoints import MadeEndpoint, make_endpoint
from tests.flows.processes import Processes
from tests.flows.world import make_owner
from tests.receivers import Receiver, receiver
from tests.waiting import wait_for

pytestmark = pytest.mark.proof


def hook(owner: Owner, to: Receiver) -> MadeEndpoint:
    return make_endpoint({"name": "scene", "url": to.url, "events": ["run.ended"]}, owner=owner)


def test_slow_and_dead_receivers_delay_no_other(
    processes: Processes, owner: Owner, no_endpoints: None
) -> None:
    """With two slots: the others get everything while the slow one has answered nothing."""
    other = make_owner("northwind")
    with receiver() as slow, receiver() as quick, receiver() as same, receiver(500) as broken:
        slow.may_answer.clear()
        hosts = ",".join(one.place for one in (slow, quick, same, broken))
        environ = {
            "FAIRSHIFT_HTTP_ALLOWED_HOSTS": hosts,
            "FAIRSHIFT_WEBHOOK_TIMEOUT_SECONDS": "2",
            "FAIRSHIFT_WEBHOOK_BACKOFF_SECONDS": "0.5",
            "FAIRSHIFT_WEBHOOK_BACKOFF_CAP_SECONDS": "1",
        }
        allowed = {**settings.FAIRSHIFT, "HTTP_ALLOWED_HOSTS": tuple(hosts.split(","))}
        with override_settings(FAIRSHIFT=allowed):
            hook(owner, slow)
            hook(owner, broken)
            of_same = hook(owner, same)
            of_quick = hook(other, quick)
        processes.start_worker("jobs", 2)
        processes.start(
            programs.notices_worker(slots=2), options=["--without-heartbeat"], **environ
        )
        processes.start_system(**environ)
        processes.start_beat()
        processes.ready()
        ours = submit_many("tests.add", [{"x": n, "y": 1} for n in range(5)], owner=owner)
        theirs = submit_many("tests.add", [{"x": n, "y": 1} for n in range(5)], owner=other)
        for submission in (ours, theirs):
            submission.wait(timeout=300)
        wait_for(lambda: len(set(quick.ids)) == 5 and len(set(same.ids)) == 5, seconds=60)
        # The slow one has answered nothing yet, and the broken one only with errors.
        assert not WebhookDelivery.objects.filter(
            endpoint__url__in=[slow.url, broken.url], state="delivered"
        ).exists()
        for made, ears in ((of_same, same), (of_quick, quick)):
            for got in ears.got:
                assert Webhook(made.secret).verify(got.body, got.headers)
        # Nothing is lost: when they work again, they get everything.
        slow.may_answer.set()
        broken.status = 204
        wait_for(
            lambda: not WebhookDelivery.objects.exclude(state="delivered").exists(), seconds=90
        )
        assert len(set(slow.ids)) == 5 and len(set(broken.ids)) == 5
