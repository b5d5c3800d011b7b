"""jobs/pages/runs: the list of runs, and verbs for all runs of a filter."""

from collections.abc import Callable

import pytest
from django.test import Client

from jobs.models import AuditEntry, Owner, Run
from jobs.runs import bulk
from tests.jobs.admin.conftest import confirm, said
from tests.jobs.scenes import submitted

RUNS = "/runs/"


def test_all_runs_of_a_filter_are_counted_and_then_cancelled(
    as_root: Client, acme: Owner, northwind: Owner
) -> None:
    """With a reason, and one entry in the audit."""
    submitted(acme, 3)
    [other] = submitted(northwind)
    url = f"{RUNS}actions/cancel/?owner=acme"
    asked = as_root.get(url)
    assert asked.context["title"] == "3 runs" and asked.context["owners"] == [("acme", 3)]
    assert not Run.objects.filter(state="cancelled").exists()
    answer = confirm(as_root, url, reason="wrong list")
    assert said(answer) == ["Cancel: done for 3 of 3."]
    assert answer.request["QUERY_STRING"] == "owner=acme"
    of_acme = Run.objects.filter(owner__slug="acme")
    assert set(of_acme.values_list("state", flat=True)) == {"cancelled"}
    other.refresh_from_db()
    assert other.state == "queued"
    entry = AuditEntry.objects.get(action="cancel runs")
    assert (entry.reason, entry.details["matched"], entry.actor_name) == ("wrong list", 3, "root")


def test_a_run_that_is_submitted_after_the_count_is_not_moved(as_root: Client, acme: Owner) -> None:
    """The person has agreed to those that were counted."""
    [counted] = submitted(acme)
    url = f"{RUNS}actions/cancel/?owner=acme"
    initial = as_root.get(url).context["form"].initial
    [late] = submitted(acme)
    as_root.post(url, initial)
    assert {*Run.objects.filter(state="cancelled")} == {counted}
    late.refresh_from_db()
    assert late.state == "queued"


def test_a_bulk_that_takes_too_long_is_sent_again(
    as_root: Client, acme: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page says how many are done, and asks for the rest."""
    monkeypatch.setattr(bulk, "CHUNK", 2)
    monkeypatch.setattr(bulk, "BUDGET_SECONDS", -1.0)
    submitted(acme, 3)
    url = f"{RUNS}actions/cancel/?owner=acme"
    answer = confirm(as_root, url)
    assert said(answer) == [
        "Cancel: done for 2 of 3. Time limit reached: confirm the rest to go on."
    ]
    assert answer.context["title"] == "1 run"


def test_a_verb_for_all_needs_a_filter(as_root: Client, acme: Owner) -> None:
    """A valid one: neither nothing nor a wrong field means all runs."""
    submitted(acme)
    for query in ("", "?state=", "?state=odd"):
        answer = as_root.post(f"{RUNS}actions/cancel/{query}", {"reason": "x"}, follow=True)
        assert b"Choose a filter first" in answer.content
    assert not Run.objects.filter(state="cancelled").exists()


def test_a_member_moves_only_runs_of_owners_that_it_operates(
    acme: Owner, northwind: Owner, stranger: Owner, person: Callable[..., Client]
) -> None:
    """Of one that it only views, and of a stranger, none."""
    for owner in (acme, northwind, stranger):
        submitted(owner)
    permissions = ("view_run", "cancel_run")
    client = person("mia", *permissions, acme="operator", northwind="viewer")
    url = f"{RUNS}actions/cancel/?state=queued"
    assert client.get(url).context["owners"] == [("acme", 1)]
    confirm(client, url)
    assert [run.owner for run in Run.objects.filter(state="cancelled")] == [acme]
    assert [one for one, _url in client.get(RUNS, {"state": "queued"}).context["actions"]] == [
        "Cancel"
    ]
    assert client.get(f"{RUNS}actions/retry/?state=failed").status_code == 403
    viewer = person("vic", *permissions, acme="viewer")
    assert viewer.get(url).status_code == 403
    assert not viewer.get(RUNS, {"state": "queued"}).context["actions"]
