"""jobs/system/notices/delivery.py and rounds.py: who gets an event, how often, and in what form."""

import json
import socket
from datetime import timedelta
from itertools import pairwise

import pytest
from standardwebhooks.webhooks import Webhook

from fleet import Kind
from jobs.core.sql import now
from jobs.models import DeliveryState, EventType, Owner, Submission, WebhookEndpoint
from jobs.system import ends
from jobs.system.notices import rounds
from jobs.system.notices.delivery import deliver
from jobs.system.notices.endpoints import rotate_key, send_test
from tests.jobs.system.notices.scenes import (
    Notices,
    collect,
    end_runs,
    endpoint,
    later,
    states,
    webhook,
)
from tests.receivers import Receiver, receiver

pytestmark = pytest.mark.usefixtures("committed")


def test_an_end_is_delivered_once_with_ids_and_nothing_secret(
    acme: Owner, notices: Notices
) -> None:
    """Signed; with state, times and the class of the error, without texts or arguments."""
    made = webhook(acme, notices.ears)
    [run] = end_runs(acme, kind=Kind.FAILED, error_type="Ööps", error_message="s3cret")
    assert [notices.round() for _ in range(2)] == [["delivered"], []]
    [got] = notices.ears.got
    body = Webhook(made.secret).verify(got.body, got.headers)
    assert got.headers["content-type"] == "application/json"
    assert body["type"] == "run.ended"
    assert (body["data"]["run"], body["data"]["owner"]) == (str(run.id), "acme")
    assert (body["data"]["state"], body["data"]["error"]) == ("failed", "Ööps")
    assert "s3cret" not in got.body and "details" not in body["data"]
    [delivery] = made.endpoint.deliveries.all()
    assert (delivery.state, delivery.attempt_count) == (DeliveryState.DELIVERED, 1)
    assert [attempt[1:3] for attempt in delivery.attempts] == [(204, "")]


def test_an_endpoint_gets_what_it_asks_for(acme: Owner, stranger: Owner, notices: Notices) -> None:
    """By owner, task, state and kind; the installation's endpoint gets all owners' events."""
    others = endpoint(acme, notices.ears, tasks=["other.*"])
    failed = endpoint(acme, notices.ears, states=["failed"])
    bulk = endpoint(acme, notices.ears, events=[EventType.SUBMISSION_ENDED])
    everything = endpoint(None, notices.ears, tasks=["tests.*"])
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
    acme: Owner, notices: Notices
) -> None:
    """One delivery at a time is tried meanwhile, after growing waits; nothing is lost."""
    with receiver(500) as ears:
        notices.allow(ears, WEBHOOK_BACKOFF_SECONDS=60.0)
        made = endpoint(acme, ears)
        runs = end_runs(acme, 5)
        # Those that were sent before the failure was known are put back without an attempt.
        assert notices.round() == ["failed", "held", "held", "held", "held"]
        waits = []
        for _hour_in_parts in range(6):
            assert notices.round() == []
            made.refresh_from_db()
            assert made.retry_at is not None
            waits.append((made.retry_at - now()).total_seconds())
            later(waits[-1])
            assert notices.round() == ["failed"]
        assert all(second > first * 1.5 for first, second in pairwise(waits))
        assert sum(waits) > 3_600
        ears.status = 200
        later(7_200)
        assert notices.round() == ["delivered"]
        later(7_200)
        assert notices.round() == ["delivered"] * 4
        arrived = {json.loads(one.body)["data"]["run"] for one in ears.got[7:]}
        assert arrived == {str(run.id) for run in runs}
        made.refresh_from_db()
        assert made.failure_count == 0 and made.is_active


def test_a_dead_receiver_delays_no_other(acme: Owner, northwind: Owner, notices: Notices) -> None:
    """Another endpoint of the same owner, and another owner's, get their events at once."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        dead = Receiver(port=unused.getsockname()[1])
    notices.allow(dead, WEBHOOK_BACKOFF_SECONDS=60.0)
    gone, same = endpoint(acme, dead), endpoint(acme, notices.ears)
    other = endpoint(northwind, notices.ears)
    end_runs(acme, 3)
    end_runs(northwind)
    notices.round()
    assert states(same) == ["delivered"] * 3 and states(other) == ["delivered"]
    assert states(gone) == ["waiting"] * 3
    problems = [one.problem for one in gone.deliveries.all() if one.tries]
    assert len(problems) == 1 and "refused" in problems[0]


def test_both_keys_sign_until_the_old_one_ends(
    acme: Owner, notices: Notices, encrypted: None
) -> None:
    """At rest both are encrypted; a receiver with either key verifies."""
    made = webhook(acme, notices.ears)
    rotated = rotate_key(made.endpoint, old_key_seconds=3_600)
    row = WebhookEndpoint.objects.get()
    assert (row.secret_key, row.old_secret_key) == (1, 1)
    send_test(row)
    assert notices.round() == ["delivered"]
    WebhookEndpoint.objects.update(old_secret_until=now() - timedelta(seconds=1))
    send_test(row)
    notices.round()
    both, last = notices.ears.got
    for secret in (made.secret, rotated.secret):
        assert Webhook(secret).verify(both.body, both.headers)
    assert len(last.headers["webhook-signature"].split()) == 1
    assert Webhook(rotated.secret).verify(last.body, last.headers)


def test_a_message_that_is_lost_is_sent_again(acme: Owner, notices: Notices) -> None:
    """After its claim has ended; one that was carried out meanwhile is not repeated."""
    endpoint(acme, notices.ears)
    end_runs(acme)
    collect()
    lost = notices.messages.pop()
    assert notices.round() == []
    later()
    assert notices.round() == ["delivered"]
    assert deliver(lost["delivery"]) == "dropped"
    assert len(notices.ears.got) == 1


def test_ends_that_a_killed_round_has_taken_are_taken_again(
    acme: Owner, notices: Notices, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They leave their table in the transaction that stores the deliveries."""
    made = endpoint(acme, notices.ears)
    end_runs(acme)
    with monkeypatch.context() as patched:
        patched.setattr(rounds, "store", lambda *_args: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            collect()
    assert not made.deliveries.exists()
    collect()
    assert made.deliveries.count() == 1


def test_rounds_send_no_more_than_the_limit_while_nothing_is_carried_out(
    acme: Owner, notices: Notices, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A slow receiver fills PostgreSQL, not Redis; what is carried out makes room."""
    monkeypatch.setattr(rounds, "MOST", 2)
    endpoint(acme, notices.ears)
    end_runs(acme, 5)
    for _round in range(3):
        collect()
    assert len(notices.messages) == 2
    first = notices.messages.pop(0)
    assert deliver(first["delivery"]) == "delivered"
    collect()
    assert len(notices.messages) == 2
    assert notices.carry_out() == ["delivered"] * 2


def test_an_endpoint_that_is_made_in_a_round_misses_no_end(
    acme: Owner, northwind: Owner, notices: Notices, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A round reads the endpoints after it has taken the ends that were recorded for them."""
    endpoint(acme, notices.ears)
    made: list[WebhookEndpoint] = []
    take = ends.take

    def late(name: str) -> ends.Ends:
        if not made:
            made.append(endpoint(northwind, notices.ears))
            end_runs(northwind)
        return take(name)

    monkeypatch.setattr(ends, "take", late)
    collect()
    assert made[0].deliveries.count() == 1
