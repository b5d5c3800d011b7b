"""jobs/system/hooks.py: the project's functions are called with ends, and harm no other."""

from collections.abc import Iterator
from typing import Any

import pytest

from jobs import on_run_end, on_submission_end
from jobs.catalog import hooks as registry
from jobs.catalog.ends import RunEnd, SubmissionEnd
from jobs.core import sql
from jobs.core.errors import OptionError
from jobs.core.states import State
from jobs.models import End, HookCall, Owner
from jobs.system import hooks
from tests.jobs.system.notices.scenes import end_runs

pytestmark = pytest.mark.usefixtures("committed")
called: list[RunEnd | SubmissionEnd] = []


def note_run(end: RunEnd) -> None:
    called.append(end)


def note_submission(end: SubmissionEnd) -> None:
    called.append(end)


def note_any(end: RunEnd | SubmissionEnd) -> None:
    called.append(end)


def fail(end: RunEnd) -> None:
    raise ValueError("the chat is away")


@pytest.fixture(autouse=True)
def _no_hooks() -> Iterator[None]:
    called.clear()
    yield
    registry.run_hooks.clear()
    registry.submission_hooks.clear()


def make_due() -> None:
    sql.query("UPDATE jobs_hookcall SET next_at = clock_timestamp()")


def test_hooks_are_called_for_runs_and_submissions(acme: Owner) -> None:
    """Once each, with what has ended."""
    on_run_end(note_run)
    on_submission_end(note_submission)
    hooks.begin_listening()
    runs = end_runs(acme, 2)
    assert hooks.call_hooks() == {"called": 3, "failed": 0}
    of_runs = [end for end in called if isinstance(end, RunEnd)]
    assert [end.run_id for end in of_runs] == [run.id for run in runs]
    assert {(end.state, end.owner, end.task) for end in of_runs} == {
        (State.SUCCEEDED, "acme", "tests.add")
    }
    [of_submission] = [end for end in called if isinstance(end, SubmissionEnd)]
    assert of_submission.counts == {State.SUCCEEDED: 2}
    assert hooks.call_hooks() == {"called": 0, "failed": 0}
    assert not HookCall.objects.exists() and not End.objects.exists()


def test_a_function_may_be_a_hook_of_both_kinds(acme: Owner) -> None:
    """It is called with each end as what it is."""
    on_run_end(note_any)
    on_submission_end(note_any)
    hooks.begin_listening()
    end_runs(acme)
    assert hooks.call_hooks() == {"called": 2, "failed": 0}
    assert [type(end) for end in called] == [RunEnd, SubmissionEnd]


def test_a_hook_that_raises_is_called_again_and_harms_no_other(
    acme: Owner, caplog: pytest.LogCaptureFixture
) -> None:
    """With a back-off, ten times at most; each failure is a line of the log."""
    on_run_end(fail)
    on_run_end(note_run)
    hooks.begin_listening()
    end_runs(acme)
    assert hooks.call_hooks() == {"called": 1, "failed": 1}
    assert hooks.call_hooks() == {"called": 0, "failed": 0}
    for _ in range(hooks.MOST_CALLS - 1):
        make_due()
        assert hooks.call_hooks()["failed"] == 1
    assert not HookCall.objects.exists()
    assert caplog.text.count("and is called again: ValueError") == hooks.MOST_CALLS - 1
    assert caplog.text.count("10 times, and is not called again: ValueError") == 1
    assert len(called) == 1


def test_a_hook_that_ends_its_process_is_given_up_too(caplog: pytest.LogCaptureFixture) -> None:
    """A call that has begun ten times and never came back is not begun again."""
    on_run_end(note_run)
    hooks.begin_listening()
    name = f"{note_run.__module__}.{note_run.__qualname__}"
    HookCall.objects.create(hook=name, facts={}, failures=hooks.MOST_CALLS)
    make_due()
    assert hooks.call_hooks() == {"called": 0, "failed": 0}
    assert not HookCall.objects.exists()
    assert caplog.text.count("10 times, and is not called again: its process ended") == 1
    assert not called


def test_without_a_hook_a_round_does_nothing() -> None:
    """Calls of hooks that this process does not know stay, and are dropped after a week."""
    HookCall.objects.create(hook="gone.hook", facts={})
    assert hooks.call_hooks() == {"called": 0, "failed": 0}
    hooks.drop_gone()
    assert HookCall.objects.count() == 1
    sql.query("UPDATE jobs_hookcall SET created_at = created_at - interval '8 days'")
    hooks.drop_gone()
    assert not HookCall.objects.exists()


@pytest.mark.parametrize("hook", [lambda _end: None, 7, "name"])
def test_a_hook_has_a_name(hook: Any) -> None:
    """It is found by its name after a restart."""
    with pytest.raises(OptionError, match="hook"):
        on_run_end(hook)
