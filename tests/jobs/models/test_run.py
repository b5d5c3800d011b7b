"""jobs/models/run.py: runs are found by owner, state and label, and tell their story."""

import pytest
from django.db import IntegrityError, transaction

from fleet import Kind
from jobs import submit
from jobs.models import Owner, Run
from tests.jobs.scenes import admitted, living_worker, recorded, submitted


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
