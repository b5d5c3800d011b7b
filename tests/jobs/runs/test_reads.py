"""jobs/runs/reads: failed runs in groups, runs page by page, and what tasks reported."""

from typing import Any

import pytest

from fleet import Kind
from jobs.actions.filters.runs import RunFilter
from jobs.core import sql
from jobs.core.states import State
from jobs.models import Owner, Run
from jobs.models.access import Access
from jobs.models.token import Scope
from jobs.runs.cancellation import cancel_runs
from jobs.runs.reads import dead_letters
from jobs.runs.reads.dead_letters import group_failed
from jobs.runs.reads.progress import newest_progress
from tests.jobs.pages.test_failures import failed
from tests.jobs.scenes import admitted, living_worker, progressed, recorded, submitted, superuser

# --- failed runs in groups -----------------------------------------------------------------


def test_only_the_newest_failures_are_grouped(acme: Owner, monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer says that there are more."""
    monkeypatch.setattr(dead_letters, "SCANNED", 2)
    runs = failed(acme, 4)
    found = group_failed(Run.objects.all(), access=superuser(), most=10)
    assert not found.is_complete
    [group] = found.groups
    assert (group.newest, group.oldest) == (runs[3].id, runs[1].id)
    monkeypatch.setattr(dead_letters, "SCANNED", 4)
    assert group_failed(Run.objects.all(), access=superuser(), most=10).is_complete


def test_a_filter_that_nothing_can_match_has_no_groups() -> None:
    """As that of an owner whom the caller does not know: Django refuses to write its SQL."""
    found = group_failed(Run.objects.filter(owner__in=[]), access=superuser(), most=10)
    assert (list(found.groups), found.is_complete) == ([], True)


# --- the newest runs of a filter ----------------------------------------------------------


EVERYTHING = Access(None, everywhere=frozenset(Scope))


def pages(wanted: RunFilter) -> list[list[Any]]:
    """Return the ids of all pages of a filter, two each."""
    found, last = [], None
    while not found or last is not None:
        page = wanted.newest(Run.objects.all(), access=EVERYTHING, after=last, limit=2)
        found.append(page.ids)
        last = page.last
    return found


@pytest.mark.parametrize("states", [(), (State.QUEUED, State.CANCELLED), (State.CANCELLED,)])
def test_runs_of_several_states_are_in_one_order(acme: Owner, states: tuple[State, ...]) -> None:
    """Each state is read by its index; the pages have every run once, the newest first."""
    runs = submitted(acme, 7)
    cancel_runs([run.id for run in runs[::3]])
    left = [run.id for run in runs if states != (State.CANCELLED,) or run in runs[::3]][::-1]
    found = pages(RunFilter(state=list(states)))
    assert [run_id for page in found for run_id in page] == left
    assert [len(page) for page in found[:-1]] == [2] * (len(found) - 1)


# --- the newest progress ------------------------------------------------------------------


def test_the_newest_reports_come_first(acme: Owner, northwind: Owner) -> None:
    """Of all owners, as many as are asked for; runs without a report are left out."""
    worker = living_worker()
    *silent, first = submitted(acme, 2)
    [second] = submitted(northwind)
    for run in silent:
        recorded(admitted(worker, run), Kind.STARTED)
    progressed(admitted(worker, first), 1, 4, "half way")
    progressed(admitted(worker, second), 2.5)
    found = newest_progress(most=9)
    assert [(one.id, one.owner, one.task) for one in found] == [
        (second.id, "northwind", "tests.add"),
        (first.id, "acme", "tests.add"),
    ]
    assert [str(one.progress) for one in found] == ["2.5", "25 % · 1 / 4 · half way"]
    assert newest_progress(most=1) == found[:1]


def test_a_report_ends_with_its_attempt(acme: Owner) -> None:
    """An ended run is not listed, nor is one whose newest attempt has reported nothing."""
    worker = living_worker()
    ended, again = submitted(acme, 2)
    for run, kind in ((ended, Kind.SUCCEEDED), (again, Kind.RETRYING)):
        admission = admitted(worker, run)
        progressed(admission, 1, 2)
        recorded(admission, kind, **({"delay": 0.0} if kind is Kind.RETRYING else {}))
    sql.query("UPDATE jobs_run SET state = 'queued' WHERE id = %s", [again.id])
    second = admitted(worker, again)
    assert newest_progress(most=9) == []
    progressed(second, 2, 2)
    assert [one.id for one in newest_progress(most=9)] == [again.id]
