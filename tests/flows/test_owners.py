"""The owner of a call, on real workers: a task's calls belong to its owner, however made."""

from typing import Any
from uuid import uuid4

import pytest
from celery.result import AsyncResult

from fleet import acting_for
from jobs import submit_many
from tests.flows.processes import Processes
from tests.flows.tasks import misbehave, whose
from tests.flows.world import ended

pytestmark = pytest.mark.proof


def _new_ids(count: int) -> list[str]:
    return [str(uuid4()) for _ in range(count)]


def _returned(ids: list[str]) -> list[Any]:
    return [AsyncResult(one).get(timeout=300) for one in ids]


def test_plain_children_of_a_run_are_its_owner_s(stack: Processes, verdict: Any) -> None:
    """By `delay`, in groups, chains and chords; they belong to its submission, too."""
    ids = _new_ids(4)
    submission = submit_many("flows.fan_out", [{"ids": ids}], owner="acme")
    assert _returned(ids) == [["acme", str(submission.id)]] * 4
    verdict(ended(submission.runs.get()))


@pytest.mark.parametrize(
    ("way", "limits"), [("value_error", {}), ("segv", {}), ("hang_on", {"time_limit": 1})]
)
def test_an_errback_is_the_owner_s_of_what_failed(
    stack: Processes, way: str, limits: dict[str, Any]
) -> None:
    """Also where the child is gone, and the worker's main process calls it."""
    [one] = _new_ids(1)
    errback = whose.s().set(task_id=one, ignore_result=False)
    with acting_for("acme", submission="8"):
        misbehave.apply_async(kwargs={"way": way}, link_error=errback, **limits)
    assert _returned([one]) == [["acme", "8"]]
