"""jobs/actions/conditions.py: whether an action applies, judged by a row or by a query."""

import pytest

from jobs.actions.declared import Noun, offered_of
from jobs.actions.runs import RUNS
from jobs.actions.submissions import SUBMISSIONS
from jobs.core.states import State
from jobs.models import Owner, Run
from tests.jobs.scenes import submitted


@pytest.mark.parametrize("noun", [RUNS, SUBMISSIONS], ids=["run", "submission"])
@pytest.mark.parametrize("state", State)
def test_a_row_is_judged_as_a_query_would(acme: Owner, noun: Noun, state: State) -> None:
    """Every action applies to, and is offered for, a row that was read just as PostgreSQL says."""
    run, *_ = submitted(acme)
    Run.objects.filter(pk=run.pk).update(state=state)
    rows = noun.rows()
    row = rows.get()
    if noun is SUBMISSIONS:
        row.page_progress = row.progress
    assert {one.name for one in noun.actions if one.applies_to(row, rows)} == {
        one.name for one in noun.actions if one.applies(rows).exists()
    }
    assert {one.name for one in offered_of(noun.actions, row, rows)} == {
        one.name for one in noun.actions if one.narrows(rows).exists()
    }
