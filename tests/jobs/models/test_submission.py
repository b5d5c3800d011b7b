"""jobs/models/{run,submission}.py: a run has values; a submission counts its runs, and ends."""

import threading
from typing import Any

import pytest
from django.db import IntegrityError, transaction

from fleet import Kind
from jobs import submit
from jobs.core.errors import OptionError
from jobs.core.states import State
from jobs.models import Owner, Progress, Run, Submission
from tests.jobs.scenes import admitted, at_once, living_worker, recorded, submitted


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


def test_progress_counts_by_state(acme: Owner) -> None:
    """What has ended, and of how many."""
    runs = submitted(acme, 3)
    submitted(acme, 2)
    recorded(admitted(living_worker(), runs[0]), Kind.SUCCEEDED)
    submission = Submission.objects.earliest("id")
    progress = submission.progress
    assert progress == Progress({State.SUCCEEDED: 1, State.QUEUED: 2})
    assert (progress.total, progress.ended, progress.is_done) == (3, 1, False)
    assert (progress[State.SUCCEEDED], progress[State.FAILED]) == (1, 0)
    assert str(progress) == "2 queued, 1 succeeded of 3"
    assert str(Progress({})) == "none of 0"


def test_waiting_ends_with_the_last_run(committed: None, acme: Owner) -> None:
    """Whoever ends it."""
    [run] = submitted(acme)
    submission = Submission.objects.get()
    is_waiting = threading.Event()

    def wait() -> Progress:
        is_waiting.set()
        return submission.wait(timeout=300, poll=0.01)

    def end() -> None:
        is_waiting.wait(100)
        recorded(admitted(living_worker(), run), Kind.SUCCEEDED)

    progress, _ = at_once(wait, end)
    assert progress == Progress({State.SUCCEEDED: 1})


def test_waiting_in_vain_says_for_how_many(acme: Owner) -> None:
    """After the time that the caller had."""
    submitted(acme, 3)
    submission = Submission.objects.get()
    with pytest.raises(TimeoutError, match=rf"3 of 3 runs of submission {submission.pk} .* 0.05"):
        submission.wait(timeout=0.05, poll=0.01)


@pytest.mark.parametrize("wrong", ["x", None, -1, float("nan"), float("inf"), True])
def test_a_span_that_is_none_is_refused(acme: Owner, wrong: Any) -> None:
    """Before the first look, by its name and limits; no timeout at all is one that may be."""
    submitted(acme)
    submission = Submission.objects.get()
    for name in ("timeout", "poll") if wrong is not None else ("poll",):
        with pytest.raises(OptionError, match=f"{name}: is a number of seconds from 0 to 31622400"):
            submission.wait(**{"timeout": 0, name: wrong})
