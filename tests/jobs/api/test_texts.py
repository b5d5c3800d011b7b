"""jobs/actions/texts.py: what PostgreSQL could not store never gets there."""

from datetime import UTC, datetime, timedelta, timezone

from jobs import submit
from jobs.models import Owner, Run
from tests.jobs.api.conftest import ADD, ROOT, Caller, post
from tests.tasks import add

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
