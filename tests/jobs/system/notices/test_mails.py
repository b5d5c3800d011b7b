"""jobs/system/notices/mails.py: a mail for the first change, and one sum for those after it."""

from typing import Any

import pytest
from django.core import mail
from pytest_django import Settings

from fleet import Kind
from jobs.models import Job, MailDigest, MailSubscription, Owner
from jobs.system.notices import rounds
from jobs.system.notices.mails import make_subscription
from tests.jobs.system.notices.scenes import allow, carry_out, collect, end_runs, later

pytestmark = pytest.mark.usefixtures("committed")
Messages = list[dict[str, Any]]
YEARS_AGO = "2020-01-01T00:00:00Z"


def subscribe(owner: Owner | None, **given: Any) -> MailSubscription:
    wanted = {"name": "ops", "events": ["run.ended"], "addresses": ["ops@acme.example"]}
    return make_subscription({**wanted, **given}, owner=owner)


def test_flapping_makes_one_mail_and_then_a_sum(
    acme: Owner, settings: Settings, messages: Messages
) -> None:
    """At most one mail for each task and state in MAIL_QUIET_SECONDS."""
    allow(settings, MAIL_QUIET_SECONDS=900)
    subscribe(acme, states=["failed"])
    end_runs(acme, kind=Kind.FAILED, error_type="Oops", error_message="s3cret")
    collect()
    assert carry_out(messages) == ["sent"]
    [first] = mail.outbox
    assert first.subject == "[Fairshift] tests.add of acme: run failed"
    assert "Oops" in first.body and "s3cret" not in first.body
    assert first.bcc == ["ops@acme.example"] and not first.to
    end_runs(acme, 30, kind=Kind.FAILED, error_type="Oops")
    end_runs(acme)
    collect()
    assert not messages
    later(900)
    collect()
    assert carry_out(messages) == ["sent"]
    assert mail.outbox[1].subject == "[Fairshift] tests.add of acme: run failed (30 ×)"
    assert "10 earlier events" in mail.outbox[1].body
    later(900)
    collect()
    assert not messages


def test_a_mail_that_cannot_be_sent_is_sent_again(
    acme: Owner, settings: Settings, messages: Messages, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mail server is away: what happens meanwhile is in the next mail."""
    allow(settings)
    subscribe(acme)

    def away(*_args: Any, **_kwargs: Any) -> None:
        raise ConnectionRefusedError("no mail server")

    with monkeypatch.context() as patched:
        patched.setattr("django.core.mail.EmailMessage.send", away)
        end_runs(acme)
        collect()
        assert carry_out(messages) == ["failed"]
    end_runs(acme, 2)
    collect()
    assert carry_out(messages) == ["sent"]
    collect()
    assert carry_out(messages) == ["sent"]
    assert [one.subject.endswith("(2 ×)") for one in mail.outbox] == [False, True]


def test_a_subscription_writes_in_its_language(
    acme: Owner, settings: Settings, messages: Messages
) -> None:
    """Whatever language the worker has."""
    allow(settings)
    subscribe(acme, language="de")
    end_runs(acme, kind=Kind.FAILED)
    collect()
    carry_out(messages)
    assert "fehlgeschlagen" in mail.outbox[0].subject


def test_a_failing_job_and_its_recovery_are_told_once_each(
    acme: Owner, settings: Settings, messages: Messages
) -> None:
    """However often the round looks."""
    from jobs import upsert_jobs
    from jobs.runs.submission import run_job
    from tests.jobs.scenes import admitted, living_worker, recorded

    allow(settings)
    subscribe(acme, events=["job.failing", "job.recovered"])
    call = {"key": "nightly", "task": "tests.add", "arguments": {"x": 1, "y": 1}, "cron": "@daily"}
    upsert_jobs(acme, [call])
    worker = living_worker()
    for kind in (Kind.FAILED, Kind.SUCCEEDED):
        run = run_job(Job.objects.get())
        admission = admitted(worker, run)
        recorded(admission, Kind.STARTED)
        recorded(admission, kind)
        for _look in range(2):
            collect()
            carry_out(messages)
    assert [one.subject for one in mail.outbox] == [
        "[Fairshift] job nightly of acme fails",
        "[Fairshift] job nightly of acme no longer fails",
    ]
    assert MailDigest.objects.count() == 2


def test_mails_of_inactive_subscriptions_hold_up_no_others(
    acme: Owner, settings: Settings, messages: Messages, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many of them are due first: a round takes a limited number."""
    allow(settings)
    monkeypatch.setattr(rounds, "MOST", 1)
    off = subscribe(acme, is_active=False)
    MailDigest.objects.create(
        subscription=off, subject="t", change="failed", held=[{}], held_count=1, next_at=YEARS_AGO
    )
    subscribe(acme)
    end_runs(acme)
    collect()
    assert carry_out(messages) == ["sent"]
    assert MailDigest.objects.get(subscription=off).held_count == 1
