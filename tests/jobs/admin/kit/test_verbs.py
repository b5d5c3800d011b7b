"""Actions on one row: asked first, done once, refused clearly, audited."""

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from jobs.models import AuditEntry, Job, Owner, Run
from tests.jobs.admin.conftest import confirm, hidden, said, stored_job


def asks(run: Run, verb: str) -> str:
    """Return the page to which a button leads."""
    return reverse("jobs:run_action", args=[run.id, verb])


@pytest.fixture
def job(acme: Owner) -> Job:
    return stored_job(acme)


def test_forgery_from_another_site_is_refused(root: User, failed_run: Run) -> None:
    """A POST needs the CSRF token."""
    client = Client(enforce_csrf_checks=True)
    client.force_login(root)
    assert client.post(asks(failed_run, "retry"), {}).status_code == 403


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
    url = reverse("admin:jobs_run_actions", args=[failed_run.id, "cancel"])
    answer = as_root.get(url, follow=True)
    assert "can be cancelled" in said(answer)[0]
    names = [tool["name"] for tool in answer.context["objectactions"]]
    assert names == ["retry"]


def test_an_error_of_the_submit_is_a_message(as_root: Client, job: Job) -> None:
    """A task that is gone is named; nothing fails with an error page."""
    Job.objects.update(task="tests.ad")
    page = confirm(as_root, reverse("admin:jobs_job_actions", args=[job.pk, "run"]))
    assert "no task named" in said(page)[0] and "tests.add" in said(page)[0]
