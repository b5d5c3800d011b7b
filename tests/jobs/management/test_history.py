"""manage.py history: what stays, what would leave, and runs from the archive."""

import json
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.core.management import CommandError

from jobs.models import HistoryRound, Owner
from tests.jobs.management.conftest import Printed
from tests.jobs.system.retention.conftest import folder, history
from tests.jobs.system.retention.old import left, midnight, old_run

__all__ = ["folder", "history"]
pytestmark = pytest.mark.usefixtures("history")


def test_status_has_the_days_and_the_last_round(
    acme: Owner, folder: Path, printed: Printed
) -> None:
    """And its problem, if it had one."""
    old_run(acme, 100)
    assert json.loads(printed("history status --json"))["oldest_day"] == str(midnight(100).date())
    printed("history drop")
    found = json.loads(printed("history status --json"))
    assert (found["days"]["RUN_DAYS"], found["days"]["FAILED_RUN_DAYS"]) == (90, 180)
    assert (found["removed_runs"], found["archived_files"], found["problem"]) == (1, 1, "")
    assert found["oldest_day"] is None and found["archive_folder"] == str(folder)
    HistoryRound.objects.update(problem="The disk is full.", problem_since=midnight(0))
    said = printed("history status")
    assert "PROBLEM since" in said and "The disk is full." in said


def test_a_dry_run_counts_by_reason(acme: Owner, northwind: Owner, printed: Printed) -> None:
    """By partition, and removes nothing."""
    Owner.objects.filter(pk=northwind.pk).update(run_days=300)
    runs = [
        *(old_run(acme, 100), old_run(acme, 100), old_run(acme, 200, state="failed")),
        *(old_run(acme, 100, state="failed"), old_run(acme, 100, state="held")),
        *(old_run(northwind, 100), old_run(acme, 100, ended_days_ago=5)),
    ]
    found = json.loads(printed("history drop --dry-run --json"))
    assert found["leaving"] == 3
    assert found["total"] == {
        "leaves": 2,
        "leaves, failed": 1,
        "failed": 1,
        "open": 1,
        "days of the owner": 1,
        "ended later": 1,
    }
    assert found["partitions"][f"jobs_run_{midnight(200):%Y%m%d}"] == {"leaves, failed": 1}
    assert printed("history drop --dry-run").endswith("3 runs of 7 would be removed.\n")
    assert left(runs) == set(runs)


def test_a_run_is_read_back(acme: Owner, folder: Path, printed: Printed) -> None:
    """By its id; with the wrong owner, or an unknown id, the command fails."""
    run = old_run(acme, 100)
    assert json.loads(printed("history read", str(run), "--json"))["file"] is None
    printed("history drop")
    for words in ([], ["--json"], ["--owner", "acme"]):
        found: dict[str, Any] = json.loads(printed("history read", str(run), *words))
        assert found["run"]["id"] == str(run) and found["file"] is not None
        assert found["arguments"] == {"args": [1], "kwargs": {"y": 2}}
    for wrong in ([str(run), "--owner", "northwind"], [str(uuid4())], ["f" * 32]):
        with pytest.raises(CommandError, match="There is no run"):
            printed("history read", *wrong)
    with pytest.raises(CommandError, match="no id of a run"):
        printed("history read 5")


def test_files_are_listed_and_verified(acme: Owner, folder: Path, printed: Printed) -> None:
    """A damaged one fails the command with its name."""
    old_run(acme, 100)
    printed("history drop")
    [found] = json.loads(printed("history archive --verify --json"))["files"]
    assert found["runs"] == 1 and "1 run, complete" in printed("history archive --verify")
    path = folder / found["file"]
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(CommandError, match=path.name):
        printed("history archive --verify")
