"""jobs/system/notices/delivery.py and rounds.py: a delivery, whatever its receiver does."""

import json
import socket
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest
from pytest_django import Settings
from standardwebhooks.webhooks import Webhook

from fleet import Kind
from jobs.core.sql import now
from jobs.models import (
    DeliveryState,
    EventType,
    Owner,
    Submission,
    WebhookEndpoint,
)
from jobs.system.notices import rounds
from jobs.system.notices.delivery import deliver
from jobs.system.notices.endpoints import make_endpoint, rotate_key, send_test
from tests.jobs.system.notices.scenes import allow, carry_out, collect, end_runs, endpoint, later
from tests.receivers import Receiver, receiver

pytestmark = pytest.mark.usefixtures("committed")
Messages = list[dict[str, Any]]


def states(of: WebhookEndpoint) -> list[str]:
    return list(of.deliveries.order_by("id").values_list("state", flat=True))


def test_an_end_is_delivered_once_with_ids_and_nothing_secret(
    acme: Owner, settings: Settings, ears: Receiver, messages: Messages
) -> None:
    """Signed; with state, times and the class of the error, without texts or arguments."""
    allow(settings, ears)
    made = make_endpoint({"name": "ci", "url": ears.url, "events": ["run.ended"]}, owner=acme)
    [run] = end_runs(acme, kind=Kind.FAILED, error_type="Oops", error_message="s3cret")
    collect()
    assert carry_out(messages) == ["delivered"]
    collect()
    assert not messages
    [got] = ears.got
    body = Webhook(made.secret).verify(got.body, got.headers)
    assert got.headers["content-type"] == "application/json"
    assert body["type"] == "run.ended"
    assert (body["data"]["run"], body["data"]["owner"]) == (str(run.id), "acme")
    assert (body["data"]["state"], body["data"]["error"]) == ("failed", "Oops")
    assert "s3cret" not in got.body and "details" not in body["data"]
    [delivery] = made.endpoint.deliveries.all()
    assert (delivery.state, delivery.attempt_count) == (DeliveryState.DELIVERED, 1)
    assert [attempt[1:3] for attempt in delivery.attempts] == [(204, "")]


def test_an_endpoint_gets_what_it_asks_for(
    acme: Owner, stranger: Owner, settings: Settings, ears: Receiver, messages: Messages
) -> None:
    """By owner, task, state and kind; the installation's endpoint gets all owners' events."""
    allow(settings, ears)
    others = endpoint(acme, ears, tasks=["other.*"])
    failed = endpoint(acme, ears, states=["failed"])
    bulk = endpoint(acme, ears, events=[EventType.SUBMISSION_ENDED])
    everything = endpoint(None, ears, tasks=["tests.*"])
    end_runs(acme, 2)
    end_runs(stranger, kind=Kind.FAILED)
    collect()
    counts = {one.pk: one.deliveries.count() for one in (others, failed, bulk, everything)}
    assert counts == {others.pk: 0, failed.pk: 0, bulk.pk: 1, everything.pk: 3}
    end_runs(acme, kind=Kind.FAILED)
    collect()
    [delivery] = failed.deliveries.all()
    assert delivery.data["state"] == "failed"
    submission = Submission.objects.filter(owner=acme).order_by("id").first()
    assert submission is not None
    first = bulk.deliveries.order_by("id")[0]
    assert first.data["submission"] == submission.pk and first.data["counts"] == {"succeeded": 2}


def test_a_receiver_that_fails_for_an_hour_gets_everything_afterwards(
    acme: Owner, settings: Settings, messages: Messages
) -> None:
    """One delivery at a time is tried meanwhile, after growing waits; nothing is lost."""
    with receiver(500) as ears:
        allow(settings, ears, WEBHOOK_BACKOFF_SECONDS=60.0)
        made = endpoint(acme, ears)
        runs = end_runs(acme, 5)
        collect()
        # Those that were sent before the failure was known are put back without an attempt.
        assert carry_out(messages) == ["failed", "held", "held", "held", "held"]
        waits = []
        for _hour_in_parts in range(6):
            collect()
            assert not messages
            made.refresh_from_db()
            assert made.retry_at is not None
            waits.append((made.retry_at - now()).total_seconds())
            later(waits[-1])
            collect()
            assert len(messages) == 1
            assert carry_out(messages) == ["failed"]
        assert all(second > first * 1.5 for first, second in pairwise(waits))
        assert sum(waits) > 3_600
        ears.status = 200
        later(7_200)
        collect()
        assert carry_out(messages) == ["delivered"]
        later(7_200)
        collect()
        assert carry_out(messages) == ["delivered"] * 4
        arrived = {json.loads(one.body)["data"]["run"] for one in ears.got[7:]}
        assert arrived == {str(run.id) for run in runs}
        made.refresh_from_db()
        assert made.failure_count == 0 and made.is_active


def test_a_dead_receiver_delays_no_other(
    acme: Owner, northwind: Owner, settings: Settings, ears: Receiver, messages: Messages
) -> None:
    """Another endpoint of the same owner, and another owner's, get their events at once."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    dead = Receiver(port=port)
    allow(settings, ears, dead, WEBHOOK_BACKOFF_SECONDS=60.0)
    gone, same, other = (endpoint(acme, dead), endpoint(acme, ears), endpoint(northwind, ears))
    end_runs(acme, 3)
    end_runs(northwind)
    collect()
    carry_out(messages)
    assert states(same) == ["delivered"] * 3 and states(other) == ["delivered"]
    assert states(gone) == ["waiting"] * 3
    problems = [one.problem for one in gone.deliveries.all() if one.tries]
    assert len(problems) == 1 and "refused" in problems[0]


def test_a_redirect_is_not_followed(
    acme: Owner, settings: Settings, ears: Receiver, messages: Messages
) -> None:
    """It could lead past the checks of addresses: it is a failure that says so."""
    with receiver(302, location=ears.url) as sly:
        allow(settings, ears, sly)
        made = endpoint(acme, sly)
        end_runs(acme)
        collect()
        assert carry_out(messages) == ["failed"]
    [delivery] = made.deliveries.all()
    assert "redirects are not followed" in delivery.problem
    assert not ears.got and len(sly.got) == 1


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("https://127.0.0.1:8443/", "loopback"),
        ("https://10.1.2.3/", "private"),
        ("https://169.254.169.254/", "link-local"),
        ("https://[::1]/", "loopback"),
        ("https://localhost/", "loopback"),
    ],
)
def test_a_private_address_is_never_reached(
    acme: Owner, settings: Settings, messages: Messages, url: str, problem: str
) -> None:
    """By the rules of the HTTP task, at each attempt: a name may point elsewhere by then."""
    allow(settings)
    made = endpoint(acme, "https://ci.example/")
    # As one that was allowed when it was made.
    WebhookEndpoint.objects.update(url=url)
    end_runs(acme)
    collect()
    assert carry_out(messages) == ["failed"]
    assert problem in made.deliveries.get().problem


def test_a_slow_receiver_is_cut_off(
    acme: Owner, settings: Settings, ears: Receiver, messages: Messages
) -> None:
    """After WEBHOOK_TIMEOUT_SECONDS it counts as failed."""
    allow(settings, ears, WEBHOOK_TIMEOUT_SECONDS=0.3)
    ears.may_answer.clear()
    made = endpoint(acme, ears)
    end_runs(acme)
    collect()
    assert carry_out(messages) == ["failed"]
    assert "longer than the limit of 0.3 s" in made.deliveries.get().problem


def test_both_keys_sign_until_the_old_one_ends(
    acme: Owner, settings: Settings, ears: Receiver, messages: Messages, encrypted: None
) -> None:
    """At rest both are encrypted; a receiver with either key verifies."""
    allow(settings, ears)
    made = make_endpoint({"name": "ci", "url": ears.url, "events": ["run.ended"]}, owner=acme)
    rotated = rotate_key(made.endpoint, old_key_seconds=3_600)
    row = WebhookEndpoint.objects.get()
    assert (row.secret_key, row.old_secret_key) == (1, 1)
    send_test(row)
    collect()
    assert carry_out(messages) == ["delivered"]
    for secret in (made.secret, rotated.secret):
        assert Webhook(secret).verify(ears.got[0].body, ears.got[0].headers)
    WebhookEndpoint.objects.update(old_secret_until=now() - timedelta(seconds=1))
    send_test(row)
    collect()
    carry_out(messages)
    assert len(ears.got[1].headers["webhook-signature"].split()) == 1
    assert Webhook(rotated.secret).verify(ears.got[1].body, ears.got[1].headers)


def test_a_message_that_is_lost_is_sent_again(
    acme: Owner, settings: Settings, ears: Receiver, messages: Messages
) -> None:
    """After its claim has ended; one that was carried out meanwhile is not repeated."""
    allow(settings, ears)
    endpoint(acme, ears)
    end_runs(acme)
    collect()
    lost = messages.pop()
    collect()
    assert not messages
    later()
    collect()
    assert carry_out(messages) == ["delivered"]
    assert deliver(lost["delivery"]) == "dropped"
    assert len(ears.got) == 1


def test_ends_that_a_killed_round_has_taken_are_taken_again(
    acme: Owner,
    settings: Settings,
    ears: Receiver,
    messages: Messages,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """They leave their table in the transaction that stores the deliveries."""
    allow(settings, ears)
    made = endpoint(acme, ears)
    end_runs(acme)
    with monkeypatch.context() as patched:
        patched.setattr(rounds, "store", lambda *_args: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            collect()
    assert not made.deliveries.exists()
    collect()
    assert made.deliveries.count() == 1
