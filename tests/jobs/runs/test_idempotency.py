"""jobs/runs/idempotency.py: asking twice with one key makes one run or one submission."""

from typing import Any

import pytest
from django.db import transaction

from jobs import submit, submit_many
from jobs.core.errors import IdempotencyConflict, OptionError
from jobs.models import IdempotencyKey, Owner, Run
from tests.jobs.scenes import behind

NUMBERS = {"x": 1, "y": 2}


def test_the_same_submit_returns_the_same_run(acme: Owner) -> None:
    """By position or by name, the arguments are the same."""
    first = submit("tests.add", 1, 2, owner=acme, idempotency_key="night")
    again = submit("tests.add", x="1", y="2", owner=acme, idempotency_key="night")
    assert (again, Run.objects.count()) == (first, 1)


@pytest.mark.parametrize(
    ("task", "arguments"),
    [("tests.add", {"x": 1, "y": 3}), ("tests.total", {"numbers": []})],
)
def test_another_submit_under_the_same_key_is_a_conflict(
    acme: Owner, task: str, arguments: dict[str, Any]
) -> None:
    """Another task or other arguments; nothing new is stored."""
    submit("tests.add", **NUMBERS, owner=acme, idempotency_key="night")  # type: ignore[arg-type]
    with pytest.raises(IdempotencyConflict, match="'night' was used"), transaction.atomic():
        submit(task, owner=acme, idempotency_key="night", arguments=arguments)
    assert Run.objects.count() == 1


def test_one_run_and_a_bulk_of_one_are_not_the_same(acme: Owner) -> None:
    """A key stands for a run or for a submission, never for both."""
    submit("tests.add", 1, 2, owner=acme, idempotency_key="night")
    with pytest.raises(IdempotencyConflict), transaction.atomic():
        submit_many("tests.add", [NUMBERS], owner=acme, idempotency_key="night")
    submit_many("tests.add", [NUMBERS], owner=acme, idempotency_key="day")
    with pytest.raises(IdempotencyConflict), transaction.atomic():
        submit("tests.add", 1, 2, owner=acme, idempotency_key="day")


@pytest.mark.parametrize(("key", "problem"), [("", "is empty"), (0, "is text"), (False, "is text")])
def test_an_empty_key_is_refused(acme: Owner, key: Any, problem: str) -> None:
    """It would protect nothing, in silence: by one submit and by a bulk. None means no key."""
    with pytest.raises(OptionError, match=f"option idempotency_key: {problem}"):
        submit("tests.add", 1, 2, owner=acme, idempotency_key=key)
    with pytest.raises(OptionError, match=f"option idempotency_key: {problem}"):
        submit_many("tests.add", [NUMBERS], owner=acme, idempotency_key=key)
    assert not Run.objects.exists()
    submit("tests.add", 1, 2, owner=acme, idempotency_key=None)


def test_each_owner_has_keys_of_its_own(acme: Owner, stranger: Owner) -> None:
    """Nobody learns which keys others have used. A repeated submit returns its owner's run."""

    def submits() -> list[Run]:
        owners = (acme, stranger)
        return [submit("tests.add", 1, o.pk, owner=o, idempotency_key="night") for o in owners]

    mine, theirs = submits()
    assert mine != theirs
    assert submits() == [mine, theirs]


@pytest.mark.parametrize("is_kept", [True, False])
def test_a_submit_waits_for_the_one_before_it(committed: None, acme: Owner, is_kept: bool) -> None:
    """It returns that one's run, or makes the run itself when that one is rolled back."""

    def ask() -> Run:
        return submit("tests.add", 1, 2, owner=acme, idempotency_key="night")

    with behind(ask) as (begin, outcomes):
        first = ask()
        begin()
        transaction.set_rollback(not is_kept)
    assert (outcomes == [first]) == is_kept
    assert outcomes == [Run.objects.get()]
    assert IdempotencyKey.objects.get().run_id == Run.objects.get().id
