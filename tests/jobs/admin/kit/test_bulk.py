"""Verbs on many rows: by the filter, in chunks, audited as one act."""

import pytest
from django.test import Client
from django.urls import reverse

from jobs.actions import performing
from jobs.models import AuditEntry, Job, Owner, Run
from jobs.runs import bulk
from tests.jobs.admin.conftest import confirm_bulk, hidden, said, stored_job
from tests.jobs.scenes import submitted

RUNS = "admin:jobs_run_changelist"
JOBS = "admin:jobs_job_changelist"
UNTIL = {"until_0": "2100-01-01", "until_1": "00:00"}


def jobs_of(owner: Owner, count: int, *, prefix: str = "j") -> list[Job]:
    return [stored_job(owner, f"{prefix}{n}") for n in range(count)]


def states(owner: Owner) -> set[str]:
    return set(Run.objects.filter(owner=owner).values_list("state", flat=True))


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
    assert states(acme) == {"cancelled"} and states(northwind) == {"queued"}
    [entry] = AuditEntry.objects.all()
    assert entry.details == {"matched": 150}


def test_when_the_time_is_over_the_same_form_goes_on_with_the_rest(
    as_root: Client, acme: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page never works for minutes; a page that is sent again acts on nothing twice."""
    monkeypatch.setattr(performing, "BUDGET_SECONDS", 0)
    jobs = jobs_of(acme, 3)
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
