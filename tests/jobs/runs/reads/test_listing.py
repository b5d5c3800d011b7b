"""jobs/runs/reads/listing.py: the newest runs of a filter, page by page."""

from typing import Any

import pytest

from jobs.actions.filters.runs import RunFilter
from jobs.core.states import State
from jobs.models import Owner, Run
from jobs.models.access import Access
from jobs.models.token import Scope
from jobs.runs.cancellation import cancel_runs
from tests.jobs.scenes import submitted

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
