"""`fairshift` against real web processes and workers: a whole story, as a user would type it."""

import csv
import json
import os
from pathlib import Path
from typing import Any

import pytest

from jobs.models import AuditEntry, Run
from jobs.owners.tokens import make_token
from tests.commands import python
from tests.flows.processes import Layout, Processes
from tests.flows.web import Site, site
from tests.flows.world import make_owner

pytestmark = pytest.mark.proof

LAYOUT = Layout(lease=30)
COUNT = 500
BAD = 5
LATER = ("flows.misbehave", "--arguments", '{"way": "return", "n": 1}', "--countdown", "3600")


def fairshift(here: Site, *words: str, status: int = 0, **environ: str) -> str:
    """Run the command; return what it printed."""
    given = {"FAIRSHIFT_URL": here.url, "FAIRSHIFT_TOKEN": here.token, **environ}
    done = python("-m", "jobs.client", *words, environ={**os.environ, **given})
    assert done.returncode == status, (done.stdout, done.stderr)
    return done.stdout if status in (0, 3) else done.stderr


def values(text: str) -> list[Any]:
    return [json.loads(line) for line in text.splitlines()]


def test_submit_watch_fail_retry_export(stack: Processes, tmp_path: Path) -> None:
    """500 runs of which 5 fail; they are found, retried with other arguments, and exported."""
    owner = make_owner("acme")
    scopes = ["read", "submit", "operate"]
    _, secret = make_token("command line", scopes=scopes, owner=owner)
    calls = tmp_path / "calls.ndjson"
    lines = [
        json.dumps({"way": "value_error", "times": int(number < BAD), "n": number})
        for number in range(COUNT)
    ]
    calls.write_text("\n".join(lines))
    with site(stack, secret) as here:
        words = ("flows.misbehave", "--each", str(calls), "--max-attempts", "1", "--json")
        [made] = values(fairshift(here, "submit", *words, "--label", "site:berlin"))
        assert made["run_count"] == COUNT
        number = str(made["id"])
        watched = fairshift(here, "watch", number, "--json", "--every", "0.2", status=3)
        assert values(watched) == [{"failed": BAD, "succeeded": COUNT - BAD}]
        failed = values(fairshift(here, "runs", "--state", "failed", "--json"))
        assert {one["error"]["type"] for one in failed} == {"ValueError"}
        shown = fairshift(here, "run", failed[0]["id"], "--timeline")
        assert "ValueError" in shown and "running" in shown
        dry = fairshift(here, "retry", "--submission", number, "--state", "failed", "--dry-run")
        assert dry == f"{BAD} would be moved\n"
        retried = ("retry", "--submission", number, "--state", "failed", "--reason", "fixed")
        assert fairshift(here, *retried) == f"{BAD} of {BAD} moved\n"
        watched = fairshift(here, "watch", number, "--every", "0.2", status=3)
        assert watched == f"{BAD} failed, {COUNT - BAD} succeeded\n"
        for run in failed:
            shown = json.loads(fairshift(here, "run", run["id"], "--json"))
            other = json.dumps({**shown["arguments"]["kwargs"], "times": 0})
            fairshift(here, "retry", run["id"], "--arguments", other)
        watched = fairshift(here, "watch", number, "--every", "0.2", "--timeout", "60")
        assert watched == f"{COUNT} succeeded\n"
        file = tmp_path / "runs.csv"
        words = ("--format", "csv", "--with-arguments", "--output", str(file))
        fairshift(here, "export", "--label", "site:berlin", *words)
        with file.open(newline="") as lines_of_file:
            rows = list(csv.DictReader(lines_of_file))
        assert {row["id"] for row in rows} == set(
            map(str, Run.objects.filter(submission=number).values_list("id", flat=True))
        )
        assert {row["result"] for row in rows} == set(map(str, range(COUNT)))
        assert len(values(fairshift(here, "export", "--submission", number))) == COUNT
        _refusals(here, failed[0]["id"])
        _actions(here)


def _actions(here: Site) -> None:
    """An action on rows by their keys: its options are the fields of the server's document."""
    assert "--until" in fairshift(here, "owners", "pause", "-h")
    words = ("owners", "pause", "acme", "--until", "2199-01-01T06:00:00Z", "--reason", "night")
    assert fairshift(here, *words) == "acme  done\n"
    [paused] = values(fairshift(here, "owners", "resume", "acme", "--json"))
    assert (paused["slug"], paused["is_paused"]) == ("acme", False)
    assert AuditEntry.objects.get(action="pause").reason == "night"
    assert "not_found" in fairshift(here, "owners", "pause", "northwind", status=1)
    assert "owners" in fairshift(here, "gardens", "pause", "acme", status=2)
    fairshift(here, "owners", "paint", "acme", status=2)
    [waiting] = values(fairshift(here, "submit", *LATER, "--json"))
    words = ("runs", "change", waiting["id"], "--labels", '{"site": "ulm"}', "--priority", "9")
    [changed] = values(fairshift(here, *words, "--json"))
    assert (changed["labels"], changed["priority"]) == ({"site": "ulm"}, 9)
    assert "precondition_failed" in fairshift(here, *words, "--if-match", '"old"', status=1)
    fairshift(here, "runs", "change", waiting["id"], "--labels", "site", status=2)
    fairshift(here, "cancel", waiting["id"])


def _refusals(here: Site, run_id: str) -> None:
    """Each kind of failure has its exit status, and a line that says what to do."""
    said = fairshift(here, "cancel", run_id, status=1)
    assert said.startswith("fairshift: state_conflict: ")
    said = fairshift(here, "submit", "flows.misbehave", "--arg", "wya=x", status=1)
    assert "invalid" in said and "wya" in said
    assert "at least one filter" in fairshift(here, "cancel", status=2)
    assert "unauthorized" in fairshift(here, "runs", status=1, FAIRSHIFT_TOKEN="fs_no")
    assert "FAIRSHIFT_TOKEN" in fairshift(here, "runs", status=2, FAIRSHIFT_TOKEN="")
