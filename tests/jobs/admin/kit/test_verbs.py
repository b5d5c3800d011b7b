"""Actions on one row: asked first, done once, refused clearly, audited."""

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from fleet import Kind
from jobs.models import AuditEntry, Job, Owner, Run
from tests.jobs.admin.conftest import confirm, hidden, said, stored_job
from tests.jobs.scenes import admitted, living_worker, recorded, submitted


def run_url(run: Run, verb: str) -> str:
    return reverse("admin:jobs_run_actions", args=[run.id, verb])


def asks(run: Run, verb: str) -> str:
    """Return the page to which a button leads."""
    return reverse("jobs:run_action", args=[run.id, verb])


@pytest.fixture
def job(acme: Owner) -> Job:
    return stored_job(acme)


def job_url(job: Job, verb: str) -> str:
    return reverse("admin:jobs_job_actions", args=[job.pk, verb])


def test_looking_changes_nothing(as_root: Client, failed_run: Run, job: Job) -> None:
    """GET on an action only asks."""
    assert as_root.get(run_url(failed_run, "retry"), follow=True).status_code == 200
    assert as_root.get(job_url(job, "run"), follow=True).status_code == 200
    failed_run.refresh_from_db()
    assert failed_run.state == "failed"
    assert Run.objects.count() == 1 and not AuditEntry.objects.exists()


def test_forgery_from_another_site_is_refused(root: User, failed_run: Run) -> None:
    """A POST needs the CSRF token."""
    client = Client(enforce_csrf_checks=True)
    client.force_login(root)
    assert client.post(asks(failed_run, "retry"), {}).status_code == 403


def test_retry_queues_again_with_the_reason_in_history_and_audit(
    as_root: Client, failed_run: Run
) -> None:
    """The button does what the verb does, and one entry says who and why."""
    page = confirm(as_root, run_url(failed_run, "retry"), reason="the switch is back")
    failed_run.refresh_from_db()
    assert failed_run.state == "queued" and failed_run.moves[-1][2] == "the switch is back"
    [entry] = AuditEntry.objects.all()
    assert (entry.action, entry.actor_name, entry.reason) == ("retry", "root", "the switch is back")
    assert "queued again" in said(page)[0]


def test_a_double_click_acts_once(as_root: Client, failed_run: Run, job: Job) -> None:
    """The same form sent twice: one retry, one run, one entry each."""
    for url in (asks(failed_run, "retry"), reverse("jobs:job_action", args=[job.pk, "run"])):
        fields = hidden(as_root.get(url))
        as_root.post(url, fields)
        again = as_root.post(url, fields, follow=True)
        assert again.status_code == 200
    assert Run.objects.count() == 2
    assert sorted(AuditEntry.objects.values_list("action", flat=True)) == ["retry", "run now"]


def test_a_run_that_has_ended_cannot_be_cancelled(as_root: Client, failed_run: Run) -> None:
    """The page says what it is and goes back; its buttons offer only what is possible."""
    answer = as_root.get(run_url(failed_run, "cancel"), follow=True)
    assert "can be cancelled" in said(answer)[0]
    names = [tool["name"] for tool in answer.context["objectactions"]]
    assert names == ["retry"]


def test_a_running_run_is_told_to_stop(as_root: Client, acme: Owner) -> None:
    """Cancel of what a worker holds asks the worker; it may start between look and click."""
    [run] = submitted(acme)
    asked = hidden(as_root.get(asks(run, "cancel")))
    recorded(admitted(living_worker(), run), Kind.STARTED)
    as_root.post(asks(run, "cancel"), asked)
    run.refresh_from_db()
    assert run.state == "cancelling"


def test_run_now_submits_with_the_jobs_arguments_and_links_to_the_run(
    as_root: Client, job: Job
) -> None:
    """One run, of this job, and the message leads to it."""
    page = confirm(as_root, job_url(job, "run"), reason="by hand")
    [run] = Run.objects.all()
    assert run.job == job and run.arguments == ([], {"x": 1, "y": 2})
    assert reverse("jobs:run", args=[run.id]) in said(page)[0]


def test_a_disabled_job_is_not_run(as_root: Client, job: Job) -> None:
    """Its button is not there, and its address says why."""
    Job.objects.update(enabled=False)
    page = as_root.get(job_url(job, "run"), follow=True)
    assert "not enabled" in said(page)[0] and not Run.objects.exists()


def test_an_error_of_the_submit_is_a_message(as_root: Client, job: Job) -> None:
    """A task that is gone is named; nothing fails with an error page."""
    Job.objects.update(task="tests.ad")
    page = confirm(as_root, job_url(job, "run"))
    assert "no task named" in said(page)[0] and "tests.add" in said(page)[0]


def test_an_owner_is_paused_until_and_resumed(as_root: Client, acme: Owner) -> None:
    """With the time and the reason; then resumed by hand."""
    url = reverse("admin:jobs_owner_actions", args=[acme.pk, "pause"])
    confirm(as_root, url, until_0="2099-01-01", until_1="06:00", reason="stocktaking")
    acme.refresh_from_db()
    assert acme.is_paused() and acme.paused_reason == "stocktaking"
    assert acme.paused_until is not None and acme.paused_until.year == 2099
    confirm(as_root, reverse("admin:jobs_owner_actions", args=[acme.pk, "resume"]))
    acme.refresh_from_db()
    assert not acme.is_paused()
    actions = list(AuditEntry.objects.order_by("id").values_list("action", flat=True))
    assert actions == ["pause", "resume"]


@pytest.mark.parametrize(
    ("until", "clock", "problem"),
    [("2001-01-01", "06:00", "has passed"), ("soon", "06:00", "valid date")],
)
def test_a_time_that_cannot_be_is_refused(
    as_root: Client, acme: Owner, until: str, clock: str, problem: str
) -> None:
    """The field says what is wrong, and nothing is paused."""
    url = reverse("admin:jobs_owner_actions", args=[acme.pk, "pause"])
    page = confirm(as_root, url, until_0=until, until_1=clock)
    assert problem in str(page.context["form"].errors)
    acme.refresh_from_db()
    assert not acme.is_paused()


def test_a_job_is_paused_until_a_time(as_root: Client, job: Job) -> None:
    """A pause of a job has an end: without one it is disabled."""
    url = job_url(job, "pause")
    page = confirm(as_root, url, reason="x")
    assert "until" in page.context["form"].errors
    confirm(as_root, url, until_0="2099-01-01", until_1="06:00")
    job.refresh_from_db()
    assert job.paused_until is not None
    confirm(as_root, job_url(job, "resume"))
    job.refresh_from_db()
    assert job.paused_until is None


def test_a_submission_is_cancelled(as_root: Client, acme: Owner) -> None:
    """All that has not ended, with one entry."""
    runs = submitted(acme, 3)
    admitted(living_worker(), runs[0])
    url = reverse("admin:jobs_submission_actions", args=[runs[0].submission_id, "cancel"])
    answer = confirm(as_root, url, reason="wrong ruleset")
    assert said(answer)[-1] == "2 of its runs cancelled, 1 asked to stop."
    assert set(Run.objects.values_list("state", flat=True)) == {"cancelled", "cancelling"}
    [entry] = AuditEntry.objects.all()
    assert (entry.object_type, entry.details) == ("submission", {"cancelled": 2, "stopping": 1})
    assert "Every run of this submission has ended, or was asked to stop." in said(
        as_root.get(url, follow=True)
    )


def test_a_reason_that_is_too_long_is_refused(as_root: Client, failed_run: Run) -> None:
    """The limit is named, and what was typed is still there."""
    page = confirm(as_root, run_url(failed_run, "retry"), reason="x" * 501)
    assert "at most 500" in str(page.context["form"].errors)
    failed_run.refresh_from_db()
    assert failed_run.state == "failed"
