"""The journey of a run, from submit to recorded history, through real workers."""

from jobs import submit
from jobs.states import State
from tests.flows.world import ended
from tests.tasks import add


def test_a_run_succeeds(stack, verdict) -> None:
    run = submit(add, x=1, y=2, owner="acme")
    done = ended(run)
    assert done.state == State.SUCCEEDED, (done.error_message, list(done.attempts.values()))
    assert done.result_value == 3
    verdict(run)


def test_own(processes, owner, verdict) -> None:
    run = submit(add, x=1, y=2, owner="acme")
    processes.start_worker(slots=1)
    done = ended(run)
    assert done.state == State.SUCCEEDED
    verdict(run)
