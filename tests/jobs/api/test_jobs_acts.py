"""jobs/api/jobs/acting.py: pause, resume, run now, backfill."""

import pytest

from jobs.models import (
    Backfill,
    Job,
    Owner,
)
from tests.jobs.api.conftest import Caller, post, problem
from tests.jobs.api.job_scenes import made


def test_a_backfill_counts_first(caller: Caller, acme: Owner) -> None:
    """A dry run makes nothing; the same key makes one."""
    client = caller(acme)
    made(client, cron="@daily")
    path = f"/jobs/{Job.objects.get().pk}/backfill"
    span = {"start": "2026-01-01T00:00:00Z", "end": "2026-01-08T00:00:00Z"}
    counted = post(client, path, {**span, "dry_run": True}).json()
    assert (counted["count"], counted["id"]) == (7, None) and not Backfill.objects.exists()
    key = {"Idempotency-Key": "week-1"}
    first, again = (post(client, path, {**span, "reason": "lost"}, **key) for _ in range(2))
    assert first.status_code == 202 and first.json() == again.json()
    assert Backfill.objects.get().submission_id == first.json()["submission"]


@pytest.mark.parametrize(
    ("span", "field"),
    [
        ({"start": "2026-01-01T00:00:00Z", "end": "2026-01-01T00:00:00Z"}, "end"),
        ({"start": "2026-01-01T00:00:00Z", "end": "2190-01-01T00:00:00Z"}, "end"),
        ({"start": "1969-01-01T00:00:00Z", "end": "2026-01-01T00:00:00Z"}, "start"),
        ({"start": "2026-01-01T00:00:00", "end": "2026-01-02T00:00:00Z"}, "start"),
        ({"start": "2026-01-01T01:00:00Z", "end": "2026-01-01T02:00:00Z"}, "end"),
    ],
)
def test_a_bad_range_is_refused(
    caller: Caller, acme: Owner, *, span: dict[str, str], field: str
) -> None:
    client = caller(acme)
    made(client, cron="@daily")
    answer = post(client, f"/jobs/{Job.objects.get().pk}/backfill", span)
    assert problem(answer, 422, "invalid")["field"] == field
    assert not Backfill.objects.exists()
