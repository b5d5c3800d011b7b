"""jobs/api/runs: submitted, listed, read, let start outside windows, and retried."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from jobs import submit
from jobs.calendars import changes
from jobs.models import AuditEntry, Calendar, Owner, Run
from tests.jobs.api.conftest import ADD, ROOT, Caller, post, problem
from tests.jobs.scenes import failed, submitted
from tests.jobs.windows_world import calendar_of, freeze
from tests.tasks import add


def test_a_submit_stores_a_run_and_says_where_it_is(caller: Caller, acme: Owner) -> None:
    """202: it is stored, and starts later. The address in Location is the run's."""
    client = caller(acme)
    response = post(client, "/runs", {**ADD, "priority": 7, "labels": {"site": "berlin"}})
    assert response.status_code == 202, response.content
    shown = response.json()
    run = Run.objects.get()
    assert response["Location"] == f"{ROOT}/runs/{run.id}"
    assert (shown["id"], shown["owner"], shown["state"]) == (str(run.id), "acme", "queued")
    assert (run.priority, run.labels, run.owner) == (7, {"site": "berlin"}, acme)
    assert client.get(response["Location"]).json()["arguments"] == {
        "args": [],
        "kwargs": {"x": 1, "y": 2},
    }


def test_pages_do_not_move_when_runs_are_added(caller: Caller, acme: Owner) -> None:
    """A cursor names the last run of its page, and not a number of runs to skip."""
    client = caller(acme)
    old = [str(run.id) for run in submitted(acme, 5)][::-1]
    first = client.get(f"{ROOT}/runs?limit=2").json()
    submitted(acme, 3)
    second = client.get(f"{ROOT}/runs?limit=2&cursor={first['next']}").json()
    third = client.get(f"{ROOT}/runs?limit=2&cursor={second['next']}").json()
    assert [run["id"] for page in (first, second, third) for run in page["items"]] == old
    assert third["next"] is None


def test_filters_narrow_the_list(caller: Caller, acme: Owner, stranger: Owner) -> None:
    """Each one alone finds its run; names of another owner find nothing."""
    [labelled] = submitted(acme, labels={"site": "berlin"}, target="sw-1")
    broken = failed(acme)
    [other] = submitted(stranger, labels={"site": "berlin"}, target="sw-1")
    client = caller(acme)

    def ids(query: str) -> set[str]:
        answer = client.get(f"{ROOT}/runs?{query}")
        assert answer.status_code == 200, answer.content
        return {run["id"] for run in answer.json()["items"]}

    both = {str(labelled.id), str(broken.id)}
    assert ids("") == ids("owner=acme") == ids("task=tests.add") == both
    assert ids("label=site:berlin") == ids("target=sw-1") == {str(labelled.id)}
    assert ids("state=failed") == ids("error=builtins.ValueError") == {str(broken.id)}
    assert ids("state=failed&state=queued") == both
    assert ids(f"submission={labelled.submission_id}") == {str(labelled.id)}
    assert ids(f"submission={other.submission_id}") == ids("owner=stranger") == set()
    assert ids("before=2020-01-01T00:00:00Z") == set()
    assert ids("after=2020-01-01T00:00:00%2B02:00") == both
    assert ids("job=nothing") == ids("task=tests.nothing") == set()
    for query, field in (
        ("state=lost", "state.0"),
        ("label=site:berlin&label=berlin", "label"),
        ("label=site:%00", "label.0"),
        ("submission=x", "submission"),
    ):
        refused = problem(client.get(f"{ROOT}/runs?{query}"), 422, "invalid")
        assert refused["field"] == field and "Value error" not in refused["detail"], refused


def test_a_filter_without_an_index_looks_at_a_bounded_number_of_runs(
    caller: Caller, acme: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page may be short and have a next one; all pages together have every run."""
    from jobs.runs.reads import listing

    monkeypatch.setattr(listing, "SCANNED", 4)
    monkeypatch.setattr(listing, "CHUNK", 2)
    broken = failed(acme)
    submitted(acme, 9)
    client, cursor, found, pages = caller(acme), "", [], 0
    while cursor is not None:
        page = client.get(f"{ROOT}/runs?error=builtins.ValueError&cursor={cursor}").json()
        found += [run["id"] for run in page["items"]]
        cursor, pages = page["next"], pages + 1
    assert found == [str(broken.id)] and pages == 3


def test_a_run_tells_its_story(caller: Caller, acme: Owner) -> None:
    """Moves, and attempts with their errors."""
    story = caller(acme).get(f"{ROOT}/runs/{failed(acme).id}/timeline").json()
    states = [move["state"] for move in story["moves"]]
    assert states == ["queued", "admitted", "running", "failed"]
    [attempt] = story["attempts"]
    assert (attempt["number"], attempt["error"]["message"]) == (1, "no")


def test_a_run_that_has_not_changed_is_not_sent_again(caller: Caller, acme: Owner) -> None:
    """Its ETag changes with each move."""
    [run] = submitted(acme)
    client = caller(acme)
    etag = client.get(f"{ROOT}/runs/{run.id}")["ETag"]
    again = client.get(f"{ROOT}/runs/{run.id}", headers={"If-None-Match": etag})
    assert again.status_code == 304 and not again.content
    run.cancel()
    assert client.get(f"{ROOT}/runs/{run.id}", headers={"If-None-Match": etag}).status_code == 200


def test_arguments_are_only_for_those_who_may_see_them(caller: Caller, acme: Owner) -> None:
    """They often hold secrets: reading alone does not show them."""
    [run] = submitted(acme)
    shown = caller(acme, "read").get(f"{ROOT}/runs/{run.id}").json()
    assert shown["arguments"] is None and shown["result"] is None
    assert caller(acme, "read", "operate").get(f"{ROOT}/runs/{run.id}").json()["arguments"]


@pytest.mark.parametrize("of", ["run", "submission"])
def test_an_override_says_which_shared_calendars_still_hold(
    caller: Caller, acme: Owner, of: str
) -> None:
    """A token of one owner may not override these; a token for all owners may."""
    freeze(calendar_of(acme))
    shared = Calendar.objects.create(owner=None, name="year end", needs_approval=False)
    changes.attach(shared, acme)
    freeze(shared)
    [run] = submitted(acme)
    path = f"/runs/{run.id}" if of == "run" else f"/submissions/{run.submission_id}"
    answer = post(caller(acme), f"{path}/override", {"reason": "storm"})
    assert answer.json() == {"overridden": 1, "held_by": ["year end"]}
    why = caller(acme).get(f"{ROOT}/runs/{run.id}/why").json()["why"]
    assert "year end" in why and "nights" not in why
    answer = post(caller(), f"{path}/override", {"reason": "storm"})
    assert answer.json() == {"overridden": 1, "held_by": []}
    assert caller(acme).get(f"{ROOT}/runs/{run.id}").json()["state"] == "queued"


def test_a_retry_may_have_other_arguments(caller: Caller, acme: Owner) -> None:
    """Wrong ones change nothing: the run stays failed."""
    run = failed(acme)
    client = caller(acme)
    wrong = post(client, f"/runs/{run.id}/retry", {"arguments": {"x": "one", "y": 2}})
    assert wrong.json()["field"] == "arguments.x"
    run.refresh_from_db()
    assert run.state == "failed" and run.arguments[1] == {"x": 0, "y": 1}
    answer = post(client, f"/runs/{run.id}/retry", {"arguments": {"x": 5, "y": 6}})
    assert (answer.status_code, answer.json()["state"]) == (202, "queued")
    run.refresh_from_db()
    assert run.arguments[1] == {"x": 5, "y": 6}
    problem(post(client, f"/runs/{run.id}/retry", {}), 409, "state_conflict")
    assert set(AuditEntry.objects.values_list("action", flat=True)) >= {"edit arguments", "retry"}


FAR_EAST = timezone(timedelta(hours=19, minutes=57))
"""An offset that RFC 3339 allows and PostgreSQL refuses."""


def test_a_time_with_any_offset_is_stored_and_compared(caller: Caller, acme: Owner) -> None:
    """RFC 3339 allows offsets up to 23:59; PostgreSQL those below 16 hours."""
    client = caller(acme)
    due = (datetime.now(UTC) + timedelta(hours=1)).astimezone(FAR_EAST)
    assert post(client, "/runs", {**ADD, "eta": due.isoformat()}).status_code == 202
    submit(add, x=1, y=2, owner="acme", eta=due)
    assert [run.due_at for run in Run.objects.all()] == [due, due]
    for path in ("/runs", "/audit", "/submissions", "/dead-letters"):
        found = client.get(f"{ROOT}{path}", {"before": due.isoformat()})
        assert found.status_code == 200, path
    none = client.get(f"{ROOT}/runs", {"before": "0001-01-01T00:00:00+19:57"})
    assert (none.status_code, none.json()["items"]) == (200, [])
