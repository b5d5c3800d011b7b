"""jobs/pages/jobs: jobs found and shown, and their verbs, for those who may."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from jobs.core.ids import scheduled_id
from jobs.models import AuditEntry, Backfill, Job, Missed, Owner, Run
from jobs.pages.kit.polls import PART
from jobs.recurring import health
from jobs.recurring.pause import pause_jobs
from tests.jobs.admin.conftest import said
from tests.jobs.admin.jobs.test_health import ended
from tests.jobs.recurring.scenes import recurring, written_raw

LIST = reverse("jobs:jobs")
Person = Callable[..., Client]


def keys(client: Client, **query: Any) -> list[str]:
    """Return the keys of the jobs that the list shows, in its order."""
    answer = client.get(LIST, query)
    assert answer.status_code == 200
    return [line.job.key for line in answer.context["lines"]]


def page_of(client: Client, job: Job) -> str:
    answer = client.get(reverse("jobs:job", args=[job.pk]))
    assert answer.status_code == 200
    return str(answer.content.decode())


def verb(job: Job, name: str) -> str:
    return reverse("jobs:job_action", args=[job.pk, name])


def test_the_list_finds_jobs_by_each_filter(as_root: Client, acme: Owner, northwind: Owner) -> None:
    """The newest first; a filter that is wrong is named, and finds nothing."""
    recurring(acme, "nightly", name="Backup", schedule="cron", cron="30 2 * * *")
    recurring(acme, "off", enabled=False)
    recurring(northwind, "other", task="tests.echo")
    assert keys(as_root) == ["other", "off", "nightly"]
    assert keys(as_root, owner="acme") == ["off", "nightly"]
    assert keys(as_root, search="nigh") == keys(as_root, search="back") == ["nightly"]
    assert keys(as_root, task="tests.echo") == ["other"]
    assert keys(as_root, schedule="cron") == ["nightly"]
    assert keys(as_root, enabled="no") == ["off"]
    assert keys(as_root, enabled="yes") == ["other", "nightly"]
    assert keys(as_root, health="ill") == []
    assert b"Select a valid choice" in as_root.get(LIST, {"health": "ill"}).content


def test_the_list_finds_jobs_by_health(as_root: Client, acme: Owner, no_ticks: None) -> None:
    """Each with the reads of the admin's filter."""
    failing, paused, broken, _well = (
        recurring(acme, key) for key in ("failing", "paused", "broken", "well")
    )
    ended(failing, "failed", at=timezone.now() - timedelta(minutes=1))
    pause_jobs([paused.pk], until=timezone.now() + timedelta(days=1))
    written_raw(broken, schedule="cron", cron="61 * * * *")
    for name in ("failing", "paused", "broken"):
        assert keys(as_root, health=name) == [name]
        assert keys(as_root, health=name, owner="acme") == [name]
    assert keys(as_root, health="late") == []


def test_a_health_that_is_not_known_for_all_jobs_is_said(
    as_root: Client, acme: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "MOST", 1)
    for key in ("one", "two"):
        written_raw(recurring(acme, key), schedule="cron", cron="61 * * * *")
    answer = as_root.get(LIST, {"health": "broken"})
    assert b"There may be more" in answer.content and len(answer.context["lines"]) == 1
    assert b"There may be more" not in as_root.get(LIST, {"health": "paused"}).content


def test_a_line_has_the_schedule_the_next_time_and_the_last_results(
    as_root: Client, acme: Owner
) -> None:
    """A job whose schedule cannot be read is shown with the problem, beside the others."""
    job = recurring(acme, "nightly", schedule="cron", cron="30 2 * * *", zone="Europe/Berlin")
    for days, state in ((3, "failed"), (2, "failed"), (1, "succeeded")):
        ended(job, state, at=timezone.now() - timedelta(days=days))
    written_raw(recurring(acme, "broken"), schedule="cron", cron="61 * * * *")
    broken, line = as_root.get(LIST).context["lines"]
    assert [state.value for state in line.results] == ["failed", "failed", "succeeded"]
    assert line.words == "At 02:30 every day, Europe/Berlin" and line.next_at > timezone.now()
    assert not line.warnings
    assert "cron" in broken.problem and [str(word) for word, *_ in broken.warnings] == ["broken"]
    ended(job, "failed", at=timezone.now())
    assert "failing" in as_root.get(LIST).content.decode()


def test_a_line_has_the_p95_of_the_run_time_of_the_last_runs(as_root: Client, acme: Owner) -> None:
    """Of 20 runs the second longest; of a few the longest; a run that did not start has none."""
    many, few, none = (recurring(acme, key, schedule="manual") for key in ("many", "few", "none"))
    for job, lengths in ((many, range(1, 21)), (few, (2, 5))):
        for seconds in lengths:
            at = timezone.now() - timedelta(hours=seconds)
            ended(job, "succeeded", at=at)
            times = {"started_at": at, "ended_at": at + timedelta(seconds=seconds)}
            Run.objects.filter(id=scheduled_id(job.pk, at)).update(**times)
    ended(none, "cancelled", at=timezone.now())
    lines = {line.job.key: line for line in as_root.get(LIST).context["lines"]}
    found = {key: line.run_seconds for key, line in lines.items()}
    assert found == {"many": 19, "few": 5, "none": None}
    assert "19.0 s" in as_root.get(LIST).content.decode()


def test_a_job_has_its_next_times_by_two_clocks_with_notes(
    as_root: Client, acme: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of the change of the clock are told."""
    before = datetime(2026, 10, 24, 12, tzinfo=UTC)
    monkeypatch.setattr("jobs.pages.jobs.job.now", lambda: before)
    job = recurring(acme, "nightly", schedule="cron", cron="30 2 * * *", zone="Europe/Berlin")
    shown = page_of(as_root, job)
    assert "Sun 2026-10-25 02:30 CEST" in shown and "Sun 2026-10-25 00:30 UTC" in shown
    assert "02:30 comes twice; this is the first" in shown
    assert "Mon 2026-10-26 02:30 CET" in shown and "Mon 2026-10-26 01:30 UTC" in shown


def test_a_job_shows_its_runs_what_it_missed_and_its_backfills(
    as_root: Client, acme: Owner
) -> None:
    job = recurring(acme, "nightly")
    ended(job, "failed", at=timezone.now() - timedelta(minutes=3))
    start = timezone.now() - timedelta(hours=2)
    Missed.objects.create(
        job=job, owner=acme, first_at=start, last_at=start, count=1234, reason="outage"
    )
    job.backfill(start, start + timedelta(minutes=5))
    shown = page_of(as_root, job)
    assert str(Run.objects.get(job=job, state="failed").id) in shown
    assert "1,234" in shown and "no scheduler or worker was running" in shown
    assert "0 / 5" in shown
    assert reverse("admin:jobs_job_change", args=[job.pk]) in shown
    part = as_root.get(reverse("jobs:job", args=[job.pk]), headers={PART: "1"})
    assert b"1,234" in part.content and b"<h1" not in part.content


def test_the_admin_links_to_the_page(as_root: Client, acme: Owner) -> None:
    job = recurring(acme, "nightly")
    edited = as_root.get(reverse("admin:jobs_job_change", args=[job.pk])).content.decode()
    assert f'href="{reverse("jobs:job", args=[job.pk])}"' in edited


def test_jobs_of_others_do_not_exist(
    no_ticks: None, acme: Owner, stranger: Owner, person: Person, as_root: Client
) -> None:
    """Not in the list, not by a filter; the page of one is that of a job that is not there."""
    mine, theirs = recurring(acme, "mine"), recurring(stranger, "theirs")
    every = ("view_job", "run_job", "pause_job")
    mia = person("mia", *every, acme="operator")
    assert keys(mia) == keys(mia, task="tests.add") == ["mine"]
    assert keys(mia, search="theirs") == []
    for health_name in health.HEALTHS:
        assert keys(mia, health=health_name) == []
    for name in ("run", "pause", "resume", "backfill", "no-such-verb"):
        foreign, unknown = mia.get(verb(theirs, name)), mia.get(f"{LIST}99999999/{name}/")
        assert foreign.status_code == unknown.status_code == 404
        assert foreign.content == unknown.content
        assert mia.post(verb(theirs, name), {"reason": ""}).content == unknown.content
    foreign, unknown, huge = (mia.get(f"{LIST}{key}/") for key in (theirs.pk, 99999999, 2**80))
    assert foreign.status_code == 404
    assert foreign.content == unknown.content == huge.content
    assert mia.get(verb(mine, "no-such-verb")).content == unknown.content
    assert "mine" in page_of(mia, mine)
    assert person("bob", acme="operator").get(LIST).status_code == 403


def test_run_now_makes_one_run_for_one_form(as_root: Client, acme: Owner) -> None:
    """A form that is sent twice runs the job once. The reason is in the audit."""
    job = recurring(acme, "nightly")
    asked = as_root.get(verb(job, "run"))
    sent = {"once": asked.context["form"]["once"].value(), "reason": "a customer asks"}
    answer = as_root.post(verb(job, "run"), sent, follow=True)
    [run] = Run.objects.filter(job=job)
    assert reverse("jobs:run", args=[run.id]) in said(answer)[0]
    assert "before" in said(as_root.post(verb(job, "run"), sent, follow=True))[0]
    assert Run.objects.filter(job=job).count() == 1
    assert AuditEntry.objects.get(action="run now").reason == "a customer asks"
    again = {"once": as_root.get(verb(job, "run")).context["form"]["once"].value()}
    as_root.post(verb(job, "run"), again)
    assert Run.objects.filter(job=job).count() == 2


def test_a_job_is_paused_until_a_time_and_resumed(as_root: Client, acme: Owner) -> None:
    job = recurring(acme, "nightly")
    assert said(as_root.get(verb(job, "resume"), follow=True)) == ["nightly is not paused."]
    past = as_root.post(verb(job, "pause"), {"until_0": "2020-01-01", "until_1": "00:00"})
    assert [*past.context["form"].errors] == ["until"]
    assert b"This field is required" in as_root.post(verb(job, "pause"), {"reason": "x"}).content
    sent = {"until_0": "2098-01-01", "until_1": "00:00", "reason": "repairs"}
    assert said(as_root.post(verb(job, "pause"), sent, follow=True)) == ["nightly is paused."]
    job.refresh_from_db()
    assert job.paused_until == datetime(2098, 1, 1, tzinfo=UTC)
    assert "Paused: not due before" in page_of(as_root, job)
    resumed = as_root.post(verb(job, "resume"), {"reason": "done"}, follow=True)
    assert said(resumed) == ["nightly is resumed."]
    job.refresh_from_db()
    assert job.paused_until is None
    actions = AuditEntry.objects.order_by("pk").values_list("action", "reason")
    assert list(actions) == [("pause", "repairs"), ("resume", "done")]


def test_a_backfill_is_counted_and_then_confirmed(as_root: Client, acme: Owner) -> None:
    """The count is shown first; a form that is sent twice begins it once."""
    job = recurring(acme, "nightly")
    asked = as_root.get(verb(job, "backfill"))
    sent = {
        "start_0": "2026-03-01",
        "start_1": "00:00",
        "end_0": "2026-03-01",
        "end_1": "01:00",
        "once": asked.context["form"]["once"].value(),
    }
    counted = as_root.post(verb(job, "backfill"), sent)
    assert b"This makes 60 runs." in counted.content and not Backfill.objects.exists()
    form = counted.context["form"]
    sent |= {"counted": form["counted"].value(), "once": form["once"].value()}
    answer = as_root.post(verb(job, "backfill"), sent, follow=True)
    assert said(answer) == ["The backfill has begun: 60 runs are being made."]
    as_root.post(verb(job, "backfill"), sent)
    assert Backfill.objects.get().count == 60
    wrong = as_root.post(verb(job, "backfill"), {**sent, "end_0": "2026-02-01"})
    assert b"must be later than start" in wrong.content


def test_verbs_are_shown_and_done_by_those_who_may(acme: Owner, person: Person) -> None:
    """By Django's permission and by the role at the owner; a disabled job is not run."""
    job = recurring(acme, "nightly")
    off = recurring(acme, "off", enabled=False)
    people = {
        "viewer": person("vera", "view_job", "run_job", "pause_job", acme="viewer"),
        "bare": person("olaf", "view_job", acme="operator"),
        "operator": person("olga", "view_job", "run_job", "pause_job", acme="operator"),
    }
    for name, client in people.items():
        is_shown = verb(job, "run") in page_of(client, job)
        allowed = client.post(verb(job, "run"), {"reason": ""})
        assert is_shown == (name == "operator")
        assert (allowed.status_code == 302) == (name == "operator")
        assert (b"run now" in client.get(LIST).content) == (name == "operator")
    assert Run.objects.filter(job=job).count() == 1
    refused = people["operator"].post(verb(off, "run"), {"reason": ""}, follow=True)
    assert said(refused) == ["off is not enabled, so it makes no runs."]
    assert not Run.objects.filter(job=off).exists()
