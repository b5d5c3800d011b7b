"""Celery's own ends: results, links, errbacks and chords see the final outcome, once."""

from typing import Any
from uuid import uuid4

import pytest
from celery import chain, chord
from celery.canvas import Signature
from celery.exceptions import TaskRevokedError
from celery.result import AsyncResult

from jobs import submit, submit_many
from jobs.core.states import State
from jobs.models import Owner
from jobs.owners.limits import pause_owner
from tests.flows.processes import Processes
from tests.flows.tasks import misbehave, told
from tests.flows.world import ended, outcomes, reached, start_count
from tests.tasks import add, total
from tests.waiting import wait_for

pytestmark = pytest.mark.proof

WAYS = ["value_error", "retry", "exit", "set", "unpicklable", "unloadable", "one_megabyte"]
# Long enough for a result of a megabyte on a busy machine: a signal in the middle of its writing
# would leave half a message in the pool's pipe, of which Celery's worker dies.
LIMITS: dict[str, Any] = {"soft_time_limit_seconds": 1.0, "time_limit_seconds": 2.0}


def _kept(signature: Signature) -> tuple[Signature, AsyncResult]:
    """Give a callback an id and have its result stored."""
    task_id = str(uuid4())
    return signature.set(task_id=task_id, ignore_result=False), AsyncResult(task_id)


def test_a_result_is_kept_for_who_asks(stack: Processes, verdict: Any) -> None:
    """With `ignore_result=False` an AsyncResult of the run's id has the return value."""
    asked = submit("tests.add", x=1, y=2, owner="acme", ignore_result=False)
    assert AsyncResult(str(asked.id)).get(timeout=300) == 3
    silent = ended(submit("tests.add", x=1, y=2, owner="acme"))
    assert AsyncResult(str(silent.id)).state == "PENDING"
    verdict(ended(asked), silent)


def test_link_and_result_see_the_success_after_retries(stack: Processes, verdict: Any) -> None:
    """A link is called once, with the final result; the errback of an earlier attempt is not."""
    link, linked = _kept(told.s())
    run = submit(
        "flows.misbehave",
        way="value_error",
        times=2,
        n=7,
        owner="acme",
        ignore_result=False,
        link=link,
        link_error=told.s(),
    )
    assert AsyncResult(str(run.id)).get(timeout=300) == 7
    assert linked.get(timeout=300) == 7
    run = ended(run)
    assert outcomes(run) == ["retrying", "retrying", "succeeded"]
    assert start_count(stack.tasks, task="flows.told") == 1, "the link alone"
    verdict(run)


@pytest.mark.parametrize("way", [*WAYS, "hang_on"])
def test_an_errback_sees_the_last_failure_once(stack: Processes, verdict: Any, way: str) -> None:
    """However the run failed, its errback is called once, after its last attempt.

    Also when it ignored its soft time limit: the child that is terminated reports nothing.
    """
    run = submit(
        "flows.misbehave",
        way=way,
        owner="acme",
        max_attempts=2,
        ignore_result=False,
        link=total.s(),
        link_error=told.s(),
        **(LIMITS if way == "hang_on" else {}),
    )
    run = reached(run, State.FAILED)
    wait_for(lambda: start_count(stack.tasks, task="flows.told") == 1, what="the errback's call")
    assert AsyncResult(str(run.id)).state == "FAILURE"
    # A second call would have passed through the queue before this one.
    after = ended(submit("tests.add", x=1, y=2, owner="acme"))
    assert start_count(stack.tasks, task="flows.told") == 1
    assert start_count(stack.tasks, task="tests.total") == 0
    verdict(run, after)


@pytest.mark.parametrize("how", ["cancelled", "expired"])
def test_nobody_waits_for_the_result_of_what_never_started(
    stack: Processes, owner: Owner, verdict: Any, how: str
) -> None:
    """Its result is Celery's "revoked", which calls no errback."""
    pause_owner(owner)
    limits = {"deadline_seconds": 0.2} if how == "expired" else {}
    run = submit(
        "tests.add", x=1, y=2, owner="acme", ignore_result=False, link_error=told.s(), **limits
    )
    if how == "cancelled":
        run.cancel()
    assert ended(run).state == how
    with pytest.raises(TaskRevokedError):
        AsyncResult(str(run.id)).get(timeout=300)
    assert start_count(stack.tasks, task="flows.told") == 0
    verdict(ended(run))


def test_a_chord_ends_with_all_results(stack: Processes, verdict: Any) -> None:
    """Its body is called once, with every result, after members that needed a retry."""
    ways = [*WAYS, "segv", "huge", "hang", "hang_on"]
    calls = [{"way": way, "times": 1, "n": n} for n, way in enumerate(ways, start=1)]
    body, sum_of_all = _kept(total.s())
    submission = submit_many("flows.misbehave", calls, owner="acme", chord=body, **LIMITS)
    assert sum_of_all.get(timeout=300) == sum(range(1, len(calls) + 1))
    submission.wait(timeout=300)
    assert all(outcomes(run)[-1] == "succeeded" for run in submission.runs.all())
    assert start_count(stack.tasks, task="tests.total") == 1
    verdict(submission)


@pytest.mark.parametrize("way", [*WAYS, "hang", "hang_on", "cancelled"])
def test_a_chord_fails_when_a_member_fails(stack: Processes, verdict: Any, way: str) -> None:
    """Its errback is called and its body is not, however the member came to its end."""
    errback, heard = _kept(told.s())
    body, never = _kept(total.s().on_error(errback))
    calls = [{"way": "hang" if way == "cancelled" else way, "times": n, "n": 1} for n in (0, 100)]
    limits = {} if way == "cancelled" else LIMITS
    submission = submit_many(
        "flows.misbehave", calls, owner="acme", chord=body, max_attempts=1, **limits
    )
    if way == "cancelled":
        member = submission.runs.order_by("id").last()
        reached(member, State.RUNNING)
        member.cancel()
    assert heard.get(timeout=300) == never.id
    # Celery calls the errback first.
    wait_for(lambda: never.state == "FAILURE")
    submission.wait(timeout=300)
    assert start_count(stack.tasks, task="tests.total") == 0
    verdict(submission)


def test_a_plain_chord_ends_with_all_results(stack: Processes) -> None:
    """Its members ignore their results, as any plain task does; the body has them all the same."""
    body, sum_of_all = _kept(total.s())
    alone = [add.s(n, n) for n in range(5)]
    chord([*alone, chain(add.s(1, 2), add.s(3))], body).apply_async()
    assert sum_of_all.get(timeout=300) == 26
    assert start_count(stack.tasks, task="tests.total") == 1


ENDS = {
    "raises": misbehave.si("value_error"),
    "is lost": misbehave.si("exit"),
    "follows one that raises": chain(misbehave.si("value_error"), add.si(1, 2), add.si(1, 2)),
    "expires": add.si(1, 2).set(expires=-1),
}


@pytest.mark.parametrize("how", ENDS)
def test_a_plain_chord_fails_when_a_member_fails(stack: Processes, how: str) -> None:
    """Its errback is called and its body is not, though the member ignores its result."""
    errback, heard = _kept(told.s())
    body, never = _kept(total.s().on_error(errback))
    chord([add.s(1, 2), ENDS[how]], body).apply_async()
    assert heard.get(timeout=300) == never.id
    # Celery calls the errback first.
    wait_for(lambda: never.state == "FAILURE")
    assert start_count(stack.tasks, task="tests.total") == 0
