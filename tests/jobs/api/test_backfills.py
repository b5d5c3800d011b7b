"""jobs/api/backfills.py: the backfills of a job are listed, followed and cancelled."""

import pytest

from jobs.models import AuditEntry, Backfill, Job, Owner, Run
from jobs.recurring.backfill import make_pending_runs
from tests.jobs.api.conftest import ROOT, Caller, post
from tests.jobs.api.job_scenes import made

WEEK = {"start": "2026-01-01T00:00:00Z", "end": "2026-01-08T00:00:00Z"}


@pytest.fixture
def path(caller: Caller, acme: Owner) -> str:
    """A daily job with a backfill of a week, whose runs are not made yet."""
    made(caller(acme), cron="@daily")
    path = f"/jobs/{Job.objects.get().pk}"
    answer = post(caller(acme), f"{path}/backfill", WEEK)
    assert answer.status_code == 202
    assert answer["Location"] == f"{ROOT}/backfills/{answer.json()['id']}"
    return f"{path}/backfills"


def test_a_backfill_is_followed_until_its_runs_are_made(
    caller: Caller, acme: Owner, path: str
) -> None:
    """The page and the list have the same state; the ETag changes with the progress."""
    client, backfill = caller(acme, "read"), Backfill.objects.get()
    one = f"{ROOT}/backfills/{backfill.pk}"
    first = client.get(one)
    assert first.json() == {
        "id": backfill.pk,
        "submission": backfill.submission_id,
        "state": "making",
        "count": 7,
        "made": 0,
        **WEEK,
        "created_at": first.json()["created_at"],
        "done_at": None,
        "progress": {"total": 0, "ended": 0, "is_done": False, "states": {}},
    }
    assert client.get(one, headers={"If-None-Match": first["ETag"]}).status_code == 304
    make_pending_runs()
    second = client.get(one, headers={"If-None-Match": first["ETag"]})
    found = second.json()
    assert (found["state"], found["made"]) == ("made", 7)
    assert found["done_at"] is not None
    assert found["progress"]["states"] == {"queued": 7}
    [listed] = client.get(f"{ROOT}{path}").json()["items"]
    assert listed == {name: value for name, value in found.items() if name != "progress"}


def test_a_cancelled_backfill_makes_no_further_runs(
    caller: Caller, acme: Owner, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its runs end, too; a second cancel changes nothing and succeeds; both are audited."""
    monkeypatch.setattr("jobs.recurring.backfill.CHUNK", 3)
    make_pending_runs(seconds=0.001)
    client, backfill = caller(acme), Backfill.objects.get()
    before = Run.objects.count()
    one = f"/backfills/{backfill.pk}"
    answers = [post(client, f"{one}/cancel", {"reason": "wrong week"}) for _ in range(2)]
    assert [each.status_code for each in answers] == [200, 200]
    assert [each.json()["cancelled"] for each in answers] == [before, 0]
    assert make_pending_runs() == 0
    assert client.get(f"{ROOT}{one}").json()["state"] == "stopped"
    assert set(Run.objects.values_list("state", flat=True)) <= {"cancelled"}
    entry = AuditEntry.objects.filter(action="cancel").earliest("id")
    assert entry.token is not None and entry.reason == "wrong week"
