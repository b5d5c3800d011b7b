"""jobs/api/tasks.py: the tasks on offer, each with the JSON schema of its arguments."""

from jobs.models import Owner
from tests.jobs.api.conftest import ROOT, Caller, problem


def test_a_task_is_shown_with_the_schema_of_its_arguments(caller: Caller, acme: Owner) -> None:
    """A form or a client can be made from it; a registered task that is not on offer is unknown."""
    client = caller(acme, "read")
    listed = {one["name"]: one for one in client.get(f"{ROOT}/tasks").json()["items"]}
    shown = client.get(f"{ROOT}/tasks/tests.add").json()
    assert listed["tests.add"] == shown
    assert shown["arguments"]["required"] == ["x", "y"]
    assert shown["arguments"]["properties"]["x"]["type"] == "integer"
    assert "fairshift.http_request" in listed
    assert not [name for name in listed if name.startswith("fairshift.system.")]
    problem(client.get(f"{ROOT}/tasks/fairshift.system.sweep"), 404, "not_found")
