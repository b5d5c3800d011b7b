"""Runs without history on real workers: run, tried again, through kills; nothing is written."""

from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest
import redis

from fleet.keys import queue_key
from jobs.models import Job, Owner
from jobs.runs.dispatch import broker as hint_broker
from tests.flows.processes import Processes
from tests.flows.world import make_owner
from tests.jobs.without_history import due_hint, job_without_history, written_count
from tests.judge import TaskLog, read_task_events
from tests.judge.log import TaskEvent
from tests.waiting import wait_for

pytestmark = pytest.mark.proof

RUNS = 200
NOW = datetime.now(UTC).replace(microsecond=0)


def publish(job: Job, count: int, **facts: object) -> set[str]:
    """Publish the hints of `count` due times of a job; return the ids of their runs."""
    hints = [due_hint(job, NOW - timedelta(seconds=n), **facts) for n in range(count)]
    hint_broker().publish(hints, timeout=10)
    return {hint.run_id for hint in hints}


def ends(log: TaskLog, outcome: str = "returned") -> Counter[str | None]:
    """Return how many bodies of each run have ended so, by the tasks' own log."""
    events = read_task_events(log.path)
    return Counter(e.run for e in events if e.event == "end" and e.outcome == outcome)


def starts(log: TaskLog) -> list[TaskEvent]:
    return [event for event in read_task_events(log.path) if event.event == "start"]


def given_up_count(stack: Processes) -> int:
    """Return how many last failures are in the workers' logs."""
    logs = (process.log.read_text() for process in stack.started)
    return sum(log.count("a run without history failed") for log in logs)


def is_drained(client: redis.Redis) -> bool:
    return not client.exists(queue_key("jobs", "meta"))


def test_runs_without_history_run_once_and_write_nothing(
    processes: Processes, owner: Owner, broker: redis.Redis
) -> None:
    """Each due time once, with the job's arguments; the rows of ours stay as they were."""
    job = job_without_history(owner, task="tests.record", arguments={"n": 7})
    before = written_count()
    worker = processes.start_worker(slots=2)
    processes.ready()
    due = publish(job, RUNS)
    wait_for(lambda: is_drained(broker), seconds=60)
    assert Counter(event.run for event in starts(processes.tasks)) == dict.fromkeys(due, 1)
    assert ends(processes.tasks) == dict.fromkeys(due, 1)
    worker.stop()  # what its connections have written is counted then
    assert written_count() == before


def test_what_fails_is_tried_again_and_then_given_up(
    stack: Processes, owner: Owner, broker: redis.Redis
) -> None:
    """By the job's policy, with rising attempts and tokens; the log has the last failure once."""
    mended = job_without_history(owner, key="mended", task="tests.fail", arguments={"times": 2})
    broken = job_without_history(owner, key="broken", task="tests.fail", arguments={"times": 9})
    lost = job_without_history(
        owner, key="lost", task="flows.misbehave", arguments={"way": "exit"}, max_attempts=2
    )
    before = given_up_count(stack)
    good, bad, gone = publish(mended, 10), publish(broken, 10), publish(lost, 1)
    wait_for(lambda: is_drained(broker), seconds=60)
    tried: dict[str | None, list[tuple[int | None, int | None]]] = {}
    for event in starts(stack.tasks):
        tried.setdefault(event.run, []).append((event.attempt, event.token))
    tries = [(1, 1), (2, 2), (3, 3)]
    expected = dict.fromkeys(good | bad, tries) | dict.fromkeys(gone, tries[:2])
    assert tried == expected
    assert set(ends(stack.tasks)) == good
    assert given_up_count(stack) - before == len(bad | gone)


def test_a_killed_worker_loses_none(
    processes: Processes, owner: Owner, broker: redis.Redis
) -> None:
    """Its lease runs out, and another worker gets its messages, as the same attempt."""
    job = job_without_history(owner, task="tests.record", arguments={"n": 1, "seconds": 0.05})
    victim, other = (processes.start_worker(name) for name in ("victim", "other"))
    processes.ready()
    due = publish(job, RUNS)
    wait_for(lambda: len(ends(processes.tasks)) > RUNS // 4)
    victim.kill()
    wait_for(lambda: is_drained(broker), seconds=60)
    assert set(ends(processes.tasks)) == due
    assert [event for event in starts(processes.tasks) if event.attempt != 1] == []
    # Its slots, and what they had done and not yet acknowledged: 100 ms of it a slot.
    assert len(starts(processes.tasks)) - RUNS <= 2 + 2 * 3
    assert other.is_alive


def test_runs_under_a_lock_do_not_overlap(
    stack: Processes, owner: Owner, broker: redis.Redis
) -> None:
    """The queue lets one message with the lock run at a time, and each owner's is its own."""
    others = make_owner("globex")
    named = {"task": "tests.record", "arguments": {"n": 1, "seconds": 0.1}, "lock_key": "db"}
    mine, theirs = (job_without_history(each, **named) for each in (owner, others))
    runs = dict.fromkeys(publish(mine, 8, lock="db"), "acme")
    runs |= dict.fromkeys(publish(theirs, 8, lock="db"), "globex")
    wait_for(lambda: is_drained(broker), seconds=60)
    alive: Counter[str] = Counter()
    seen = set()
    for event in read_task_events(stack.tasks.path):
        assert event.run is not None
        alive[runs[event.run]] += {"start": 1, "end": -1}[event.event]
        seen.add((alive["acme"], alive["globex"]))
    assert max(acme for acme, _ in seen) == max(globex for _, globex in seen) == 1
    assert (1, 1) in seen, "one owner waited for the other's lock"
    assert len(ends(stack.tasks)) == 16
