"""Actions in the admin: on many rows, by the filter; on one row, asked first and done once."""

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from jobs.actions import performing
from jobs.models import AuditEntry, Job, Owner, Run
from jobs.runs import bulk
from tests.jobs.admin.conftest import confirm, confirm_bulk, hidden, said, stored_job
from tests.jobs.scenes import submitted

RUNS = "admin:jobs_run_changelist"
JOBS = "admin:jobs_job_changelist"
UNTIL = {"until_0": "2100-01-01", "until_1": "00:00"}


def test_the_selected_rows_are_moved_with_one_entry_an_owner(
    as_root: Client, acme: Owner, northwind: Owner
) -> None:
    """Not one entry a row; and each owner's members can read theirs."""
    runs = submitted(acme, 5) + submitted(northwind, 2)
    keys = [str(run.id) for run in runs[1:]]
    page = confirm_bulk(as_root, reverse(RUNS), "cancel", keys, reason="wrong version")
    assert said(page) == ["Cancel: done for 6 of 6."]
    assert Run.objects.filter(state="queued").count() == 1
    entries = {entry.owner.slug: entry for entry in AuditEntry.objects.all() if entry.owner}
    assert {slug: e.details["matched"] for slug, e in entries.items()} == {
        "acme": 4,
        "northwind": 2,
    }
    assert {entry.action for entry in entries.values()} == {"cancel runs"}


def test_select_all_goes_by_the_filter_and_carries_no_keys(
    as_root: Client, acme: Owner, northwind: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The form stays small, the rows are moved in chunks, and other owners' stay as they are."""
    monkeypatch.setattr(bulk, "CHUNK", 7)
    submitted(acme, 150)
    submitted(northwind, 2)
    url = reverse(RUNS, query={"owner": "acme", "state": "queued"})
    shown = as_root.get(url).context["cl"].result_list
    first = {"action": "cancel", "select_across": "1", "index": "0"}
    asked = as_root.post(url, {**first, "_selected_action": [str(shown[0].id)]})
    assert asked.context["title"] == "150 runs"
    assert len(asked.content) < 50_000
    page = confirm_bulk(as_root, url, "cancel", [str(shown[0].id)], across=True, reason="all of it")
    assert said(page) == ["Cancel: done for 150 of 150."]
    assert set(Run.objects.values_list("owner", "state")) == {
        (acme.pk, "cancelled"),
        (northwind.pk, "queued"),
    }
    [entry] = AuditEntry.objects.all()
    assert entry.details == {"matched": 150}


def test_when_the_time_is_over_the_same_form_goes_on_with_the_rest(
    as_root: Client, acme: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page never works for minutes; a page that is sent again acts on nothing twice."""
    monkeypatch.setattr(performing, "BUDGET_SECONDS", 0)
    jobs = [stored_job(acme, f"j{number}") for number in range(3)]
    url = reverse(JOBS)
    page = confirm_bulk(as_root, url, "run", [job.pk for job in jobs])
    counts, bodies = [], []
    while "form" in page.context:
        counts.append(len(page.context["rows"]))
        bodies.append({**hidden(page), **UNTIL})
        page = as_root.post(url, bodies[-1], follow=True)
        assert len(counts) < 9
    assert counts == [2, 1]
    as_root.post(url, bodies[0])
    assert sorted(Run.objects.values_list("job", flat=True)) == [job.pk for job in jobs]


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
