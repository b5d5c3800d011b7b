"""Priorities, caps, locks and pauses, over two workers."""

from typing import Any

from jobs import submit, submit_many
from jobs.core.states import State
from jobs.models import Owner, Run, Submission
from jobs.owners.limits import pause_owner, resume_owner
from tests.flows.processes import Layout, Processes
from tests.flows.world import bodies, ended, make_owner, most_at_once
from tests.waiting import wait_for

# Runs wait here for a slot, and no sweep is to hold their rows meanwhile.
LAYOUT = Layout(lease=30)


def _ids(*submissions: Submission) -> set[str]:
    return {str(run.id) for submission in submissions for run in submission.runs.all()}


def test_higher_priority_starts_first(stack: Processes, verdict: Any) -> None:
    """With every slot taken, what is more urgent overtakes what came before it in its submission.

    Or outside of any, as here: submissions share an owner's part, whatever their priorities.
    """
    busy = submit_many("tests.sleep", [{"seconds": 2.5}] * 4, owner="acme")
    wait_for(lambda: Run.objects.filter(state=State.RUNNING).count() == 4)
    # They last longer than the busy ones end apart: a worker has taken one ahead for each slot.
    low, high = (
        [submit("tests.record_apart", n, 1.0, owner="acme", priority=priority) for n in range(4)]
        for priority in (1, 9)
    )
    for run in low:
        ended(run)
    started = {
        name: [bodies(stack.tasks, run)[0].position for run in runs]
        for name, runs in (("low", low), ("high", high))
    }
    assert max(started["high"]) < min(started["low"])
    verdict(busy, *low, *high)


def test_an_owners_cap_holds_over_all_workers(stack: Processes, verdict: Any) -> None:
    """No more than `max_running` bodies are alive at once, and as many as that."""
    make_owner("acme", max_running=2)
    calls = [{"n": n, "seconds": 0.1} for n in range(12)]
    submission = submit_many("tests.record", calls, owner="acme")
    submission.wait(timeout=300)
    assert most_at_once(stack.tasks, of=_ids(submission)) == 2
    verdict(submission)


def test_a_lock_lets_one_run_at_a_time(stack: Processes, verdict: Any) -> None:
    """Runs with one key never overlap; those with another key do not wait for them."""
    calls = [{"n": n % 2, "seconds": 0.1} for n in range(10)]
    submission = submit_many("tests.record", calls, owner="acme", lock="rack-{n}")
    submission.wait(timeout=300)
    by_key: dict[str, set[str]] = {}
    for run in submission.runs.all():
        by_key.setdefault(run.lock_key, set()).add(str(run.id))
    assert [most_at_once(stack.tasks, of=ids) for ids in by_key.values()] == [1, 1]
    assert most_at_once(stack.tasks, of=_ids(submission)) == 2
    verdict(submission)


def test_a_paused_owner_waits_and_others_do_not(
    stack: Processes, owner: Owner, verdict: Any
) -> None:
    """Its runs stay queued and say why; after the pause they start by themselves."""
    make_owner("globex")
    pause_owner(owner, reason="audit")
    paused = submit_many("tests.record", [{"n": n} for n in range(5)], owner="acme")
    other = ended(submit("tests.record", n=1, owner="globex"))
    assert other.state == State.SUCCEEDED
    assert {run.state for run in paused.runs.all()} == {State.QUEUED}
    assert paused.runs.first().why_waiting() == "Owner acme is paused: audit"
    resume_owner(owner)
    assert paused.wait(timeout=200)[State.SUCCEEDED] == 5
    verdict(paused, other)
