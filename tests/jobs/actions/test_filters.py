"""jobs/actions/filters: one declaration of a list's filters, for every face."""

import json
from urllib.parse import parse_qs

import pytest
from django.test import Client

from jobs.models import Job, Owner
from jobs.owners.limits import pause_owner
from jobs.runs.cancellation import cancel_runs
from tests.jobs.scenes import submitted
from tests.jobs.windows_world import calendar_of


@pytest.mark.parametrize(
    "query",
    [
        "state=open",
        "state=cancelled",
        "label=site:berlin",
        "owner=northwind",
        "age=1h",
        "after=2999-01-01T00:00:00Z",
        "task=tests.add&state=problem",
    ],
)
def test_each_face_finds_the_same_runs(
    as_root: Client, acme: Owner, northwind: Owner, query: str
) -> None:
    """The page, the API, exports, a saved view, and all that an action would be done to."""
    submitted(acme, 2, labels={"site": "berlin"})
    cancel_runs([submitted(northwind)[0].id])
    submitted(northwind)
    page = as_root.get(f"/runs/?{query}").context
    found = {str(run.id) for run in page["list"].rows}
    listed = as_root.get(f"/api/v1/runs?{query}").json()["items"]
    assert {run["id"] for run in listed} == found
    exported = b"".join(as_root.get(f"{page['export']}&format=ndjson"))
    assert {json.loads(line)["id"] for line in exported.splitlines()} == found
    as_root.post(f"/runs/views/save/?{query}", {"name": "mine"})
    [(_view, saved, _is_current)] = as_root.get("/runs/views/").context["views"]
    assert {str(run.id) for run in as_root.get(saved).context["list"].rows} == found
    wanted = {name: value[0] for name, value in parse_qs(saved.partition("?")[2]).items()}
    for name in wanted.keys() & {"state", "label"}:
        wanted[name] = [wanted[name]]  # type: ignore[assignment]
    counts = [
        as_root.post(
            f"/api/v1/runs/{verb}",
            {"filter": wanted, "dry_run": True},
            content_type="application/json",
        ).json()["matched"]
        for verb in ("cancel", "retry")
    ]
    assert sum(counts) == len(found)
    if "label" not in query and "after" not in query and "task" not in query:
        rows = as_root.get(f"/admin/jobs/run/?{query}").context["cl"].result_list
        assert {str(run.id) for run in rows} == found


@pytest.mark.parametrize(
    ("address", "count"),
    [
        ("jobs?enabled=no", 1),
        ("jobs?search=nigh&health=paused", 0),
        ("jobs?owner=northwind", 0),
        ("submissions?label=weekly", 1),
        ("submissions?age=1h&owner=acme", 2),
        ("owners?search=no", 1),
        ("owners?paused=yes", 1),
        ("calendars?search=IGHT", 1),
        ("calendars?approval=asked", 0),
        ("audit?action=pause&object_type=owner", 1),
    ],
)
def test_a_page_and_the_api_find_the_same_rows(
    as_root: Client, acme: Owner, northwind: Owner, address: str, count: int
) -> None:
    """By the same query, for each list that both have."""
    Job.objects.create(owner=acme, key="nightly", task="tests.add", payload=b"{}")
    Job.objects.create(owner=acme, key="off", task="tests.add", payload=b"{}", enabled=False)
    submitted(acme, label="weekly")
    submitted(acme)
    pause_owner(northwind, reason="stocktaking")
    calendar_of(acme, "nights")
    rows = as_root.get("/" + address.replace("?", "/?")).context["list"].rows
    items = as_root.get(f"/api/v1/{address}").json()["items"]
    key = "slug" if address.startswith("owners") else "id"
    assert [item[key] for item in items] == [getattr(row, key) for row in rows]
    assert len(rows) == count
