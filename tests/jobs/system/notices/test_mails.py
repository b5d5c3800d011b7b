"""jobs/system/notices/mails.py: a mail for the first change, and one sum for those after it."""

from typing import Any

import pytest
from django.core import mail

from fleet import Kind
from jobs.models import MailDigest, Owner
from jobs.system.notices import rounds
from tests.jobs.system.notices.scenes import Notices, end_runs, later, subscribe

pytestmark = pytest.mark.usefixtures("committed")
YEARS_AGO = "2020-01-01T00:00:00Z"


def test_flapping_makes_one_mail_and_then_a_sum(acme: Owner, notices: Notices) -> None:
    """At most one mail for each task and state in MAIL_QUIET_SECONDS."""
    notices.allow(MAIL_QUIET_SECONDS=900)
    subscribe(acme, states=["failed"])
    end_runs(acme, kind=Kind.FAILED, error_type="Oops", error_message="s3cret")
    assert notices.round() == ["sent"]
    [first] = mail.outbox
    assert first.subject == "[Fairshift] tests.add of acme: run failed"
    assert "Oops" in first.body and "s3cret" not in first.body
    assert first.bcc == ["ops@acme.example"] and not first.to
    end_runs(acme, 30, kind=Kind.FAILED, error_type="Oops")
    end_runs(acme)
    assert notices.round() == []
    later(900)
    assert notices.round() == ["sent"]
    assert mail.outbox[1].subject == "[Fairshift] tests.add of acme: run failed (30 ×)"
    assert "10 earlier events" in mail.outbox[1].body
    later(900)
    assert notices.round() == []


def test_a_mail_that_cannot_be_sent_is_sent_again(
    acme: Owner, notices: Notices, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mail server is away: what happens meanwhile is in the next mail."""
    subscribe(acme)

    def away(*_args: Any, **_kwargs: Any) -> None:
        raise ConnectionRefusedError("no mail server")

    with monkeypatch.context() as patched:
        patched.setattr("django.core.mail.EmailMessage.send", away)
        end_runs(acme)
        assert notices.round() == ["failed"]
    end_runs(acme, 2)
    assert [notices.round() for _ in range(2)] == [["sent"], ["sent"]]
    assert [one.subject.endswith("(2 ×)") for one in mail.outbox] == [False, True]


def test_a_subscription_writes_in_its_language(acme: Owner, notices: Notices) -> None:
    """Whatever language the worker has."""
    subscribe(acme, language="de")
    end_runs(acme, kind=Kind.FAILED)
    notices.round()
    assert "fehlgeschlagen" in mail.outbox[0].subject


def test_mails_of_inactive_subscriptions_hold_up_no_others(
    acme: Owner, notices: Notices, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many of them are due first: a round takes a limited number."""
    monkeypatch.setattr(rounds, "MOST", 1)
    off = subscribe(acme, is_active=False)
    MailDigest.objects.create(
        subscription=off, subject="t", change="failed", held=[{}], held_count=1, next_at=YEARS_AGO
    )
    subscribe(acme)
    end_runs(acme)
    assert notices.round() == ["sent"]
    assert MailDigest.objects.get(subscription=off).held_count == 1
