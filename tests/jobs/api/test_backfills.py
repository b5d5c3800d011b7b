"""jobs/api/backfills.py: backfills are counted, begun, listed, followed and cancelled."""

import pytest

from jobs.models import Backfill, Job, Owner
from jobs.recurring.backfill import make_pending_runs
from tests.jobs.api.conftest import ROOT, Caller, post
from tests.jobs.api.job_scenes import made
from tests.jobs.api.test_wrong_fields import WEEK


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


def test_a_backfill_is_cancelled_twice_without_an_error(
    caller: Caller, acme: Owner, path: str
) -> None:
    """The second cancel changes nothing. None of its runs is left, and no other is made."""
    make_pending_runs()
    one = f"/backfills/{Backfill.objects.get().pk}"
    answers = [post(caller(acme), f"{one}/cancel", {"reason": "wrong week"}) for _ in range(2)]
    assert [each.json()["cancelled"] for each in answers] == [7, 0]


def test_a_backfill_counts_first(caller: Caller, acme: Owner) -> None:
    """A dry run makes nothing; the same key makes one."""
    client = caller(acme)
    made(client, cron="@daily")
    path = f"/jobs/{Job.objects.get().pk}/backfill"
    counted = post(client, path, {**WEEK, "dry_run": True}).json()
    assert (counted["count"], counted["id"]) == (7, None) and not Backfill.objects.exists()
    key = {"Idempotency-Key": "week-1"}
    first, again = (post(client, path, {**WEEK, "reason": "lost"}, **key) for _ in range(2))
    assert first.status_code == 202 and first.json() == again.json()
    assert Backfill.objects.get().submission_id == first.json()["submission"]
