"""jobs/models/run.py: runs are found by owner, state and label, and tell their story."""

from datetime import UTC, datetime

import pytest
from django.db import IntegrityError, transaction

from fleet import Kind
from jobs import submit
from jobs.core.states import State
from jobs.models import Owner, Run
from tests.jobs.scenes import admitted, living_worker, recorded, submitted


def test_querysets_chain(acme: Owner, northwind: Owner) -> None:
    """Of one owner, in some state, with all of these labels."""
    labels = {"site": "berlin", "floor": "3"}
    mine = submit("tests.add", 1, 2, owner=acme, labels=labels)
    theirs = submit("tests.add", 1, 2, owner=northwind, labels={"site": "berlin"})
    runs = Run.objects.all()
    assert set(runs.for_owner("acme").open()) == {mine}
    assert set(runs.labelled(site="berlin")) == {mine, theirs}
    assert set(runs.labelled(site="berlin", floor="3").for_owner("northwind")) == set()
    at = admitted(living_worker(), mine)
    assert set(runs.active()) == {mine}
    recorded(at, Kind.FAILED)
    assert (set(runs.failed()), set(runs.open())) == ({mine}, {theirs})


def test_newest_first(acme: Owner) -> None:
    """Ids sort by time."""
    runs = submitted(acme, 3)
    assert list(Run.objects.all()) == runs[::-1]


def test_the_history_reads_as_moves() -> None:
    """State, moment in UTC and cause."""
    run = Run(state="queued", history=[["queued", 1_772_366_400.25, "due"]])
    assert run.moves == [(State.QUEUED, datetime(2026, 3, 1, 12, 0, 0, 250_000, tzinfo=UTC), "due")]


def test_results_and_arguments_are_values(acme: Owner) -> None:
    """Before it has succeeded a run has no result, which is not the same as a null one."""
    run = submit("tests.add", 1, y=2, owner=acme)
    assert (run.arguments, run.result_value, run.is_ended) == (([], {"x": 1, "y": 2}), None, False)
    recorded(admitted(living_worker(), run), Kind.SUCCEEDED, result=b"3")
    run.refresh_from_db()
    assert (run.result_value, run.is_ended) == (3, True)


@pytest.mark.parametrize("wrong", [{"state": "lost"}, {"priority": 10}])
def test_the_table_refuses_what_is_no_run(acme: Owner, wrong: dict[str, object]) -> None:
    """Unknown states and priorities, whoever writes them."""
    submitted(acme)
    with pytest.raises(IntegrityError), transaction.atomic():
        Run.objects.update(**wrong)
