"""jobs/pages/jobs: jobs found and shown, and their verbs, for those who may."""

from datetime import timedelta

from django.test import Client
from django.urls import reverse
from django.utils import timezone

from jobs.models import Backfill, Job, Missed, Owner, Run
from jobs.pages.kit.polls import PART
from tests.jobs.admin.conftest import said
from tests.jobs.admin.jobs.test_health import ended
from tests.jobs.recurring.scenes import recurring, written_raw

LIST = reverse("jobs:jobs")


def verb(job: Job, name: str) -> str:
    return reverse("jobs:job_action", args=[job.pk, name])


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
    page = reverse("jobs:job", args=[job.pk])
    shown = as_root.get(page).content.decode()
    assert str(Run.objects.get(job=job, state="failed").id) in shown
    assert "1,234" in shown and "no scheduler or worker was running" in shown
    assert "0 / 5" in shown
    assert reverse("admin:jobs_job_change", args=[job.pk]) in shown
    part = as_root.get(page, headers={PART: "1"})
    assert b"1,234" in part.content and b"<h1" not in part.content


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
