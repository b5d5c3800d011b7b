"""jobs/rollouts/telling.py and its events: each change of waves is told once, with its counts."""

from typing import Any

import pytest
from django.core import mail
from django.db import transaction

from fleet import Kind
from jobs import Waves, submit_many
from jobs.models import EventType, MailDigest, Owner, Rollout, Submission, WebhookDelivery
from jobs.rollouts import rounds
from jobs.system.promotion import queue_due
from tests.jobs.scenes import finish
from tests.jobs.system.notices.scenes import Notices, collect, endpoint, subscribe

pytestmark = pytest.mark.usefixtures("committed")
OF_WAVES = [EventType.WAVE_ENDED, EventType.ROLLOUT_STOPPED, EventType.ROLLOUT_WAITS]


def rollout(owner: Owner, **waves: Any) -> Submission:
    """Submit six runs in waves of two and four."""
    calls = [{"x": number, "y": 0} for number in range(6)]
    asked = Waves(sizes=[2, "100%"], **waves)
    options: Any = {"owner": owner, "label": "firmware 7", "max_attempts": 1}
    return submit_many("tests.add", calls, waves=asked, **options)


def end(submission: Submission, kind: Kind, count: int) -> None:
    """End queued runs, the lowest first."""
    finish(submission.runs.filter(state="queued").order_by("id")[:count], kind)


def events_of(owner: Owner | None = None) -> list[tuple[str, int, dict[str, int]]]:
    rows = WebhookDelivery.objects.filter(endpoint__owner=owner).order_by("id")
    return [(row.event_type, row.data["wave"], row.data["counts"]) for row in rows]


def test_each_change_of_waves_is_told_once(acme: Owner, stranger: Owner, notices: Notices) -> None:
    """With the counts of its wave, the limit and the address of the page; to its owner only."""
    notices.allow(SITE_URL="https://jobs.acme.example/")
    for owner in (acme, stranger):
        endpoint(owner, notices.ears, events=OF_WAVES)
    submission = rollout(acme, stop_at="30%", between="approval")
    end(submission, Kind.SUCCEEDED, 2)
    for _look in range(2):
        rounds.advance(queue_due)
        collect()
    ended = ("wave.ended", 1, {"succeeded": 2})
    assert events_of(acme) == [ended, ("rollout.waits", 1, {"succeeded": 2})]
    rounds.release(Rollout.objects.get(pk=submission.pk))
    rounds.advance(queue_due)
    submission.runs.filter(state="held").update(state="queued", blocked_by="", next_at=None)
    end(submission, Kind.FAILED, 2)
    collect()
    stopped = events_of(acme)[2:]
    assert stopped == [("rollout.stopped", 2, {"failed": 2, "queued": 2})]
    data = WebhookDelivery.objects.order_by("id")[2].data
    assert data["url"] == f"https://jobs.acme.example/submissions/{submission.pk}/"
    assert (data["stop_at"], data["waves"], data["label"]) == ("30%", 2, "firmware 7")
    assert data["reason"] == "2 of 2 ended runs of wave 2 have failed"
    assert not events_of(stranger)


def test_an_event_is_noted_with_its_change_or_not_at_all(acme: Owner, notices: Notices) -> None:
    """A change that is rolled back tells nothing; a process that dies after it loses nothing."""
    hook = endpoint(acme, notices.ears, events=OF_WAVES)
    submission = rollout(acme)
    end(submission, Kind.SUCCEEDED, 2)
    with transaction.atomic():
        rounds.advance(queue_due)
        transaction.set_rollback(True)
    collect()
    assert not hook.deliveries.exists()
    rounds.advance(queue_due)
    for _look in range(2):
        collect()
    assert events_of(acme) == [("wave.ended", 1, {"succeeded": 2})]


def test_without_interest_nothing_is_noted(acme: Owner, notices: Notices) -> None:
    """A webhook that is made later gets no old events; a spoilt note keeps back no other."""
    one, other = rollout(acme), rollout(acme)
    end(one, Kind.SUCCEEDED, 2)
    rounds.advance(queue_due)
    endpoint(acme, notices.ears, events=OF_WAVES)
    end(other, Kind.SUCCEEDED, 2)
    rounds.advance(queue_due)
    Rollout.objects.filter(pk=one.pk).update(untold=[{"type": "none"}])
    collect()
    [delivery] = WebhookDelivery.objects.all()
    assert delivery.data["submission"] == other.pk
    assert not Rollout.objects.exclude(untold=None).exists()


def test_a_mail_that_asks_for_a_person_does_not_wait(acme: Owner, notices: Notices) -> None:
    """Each stop and each approval has its own; ends of waves are summed up."""
    notices.allow(MAIL_QUIET_SECONDS=900, SITE_URL="https://jobs.acme.example")
    subscribe(acme, events=OF_WAVES)
    submission = rollout(acme, stop_at=0, between="approval")
    end(submission, Kind.SUCCEEDED, 2)
    rounds.advance(queue_due)
    notices.round()
    subjects = sorted(one.subject for one in mail.outbox)
    assert subjects == [
        "[Fairshift] firmware 7 of acme: wave 1 of 2 ended",
        "[Fairshift] firmware 7 of acme: wave 2 of 2 needs an approval",
    ]
    assert f"https://jobs.acme.example/submissions/{submission.pk}/" in mail.outbox[0].body
    assert "2 succeeded" in mail.outbox[0].body
    assert set(MailDigest.objects.values_list("subject", flat=True)) == {
        f"submission {submission.pk}"
    }
