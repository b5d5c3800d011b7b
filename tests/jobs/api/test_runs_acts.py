"""jobs/api/runs: a run is let start outside its windows, and retried with other arguments."""

import pytest

from jobs.calendars import changes
from jobs.models import AuditEntry, Calendar, Owner
from tests.jobs.api.conftest import ROOT, Caller, post, problem
from tests.jobs.scenes import failed, submitted
from tests.jobs.windows_world import calendar_of, freeze


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
