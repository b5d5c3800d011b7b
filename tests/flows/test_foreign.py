"""What a writer to the broker can have a worker do: nothing without a row, and nothing for long."""

from __future__ import annotations

import redis

from fleet import programs
from jobs import submit
from jobs.models import Owner
from tests.flows.foreign import call, signature
from tests.flows.processes import Processes
from tests.flows.world import ended
from tests.judge import read_task_events
from tests.waiting import wait_for


def test_no_plain_message_calls_the_body_of_a_task_that_requires_a_row(
    processes: Processes, owner: Owner, broker: redis.Redis
) -> None:
    """Nor through another one: Celery's map, starmap and chunks, and errbacks, call in place."""
    worker = processes.start(programs.job_worker("worker", slots=1))
    system = processes.start_system()
    processes.ready()
    row = signature("flows.offered")
    indirect = [
        call("celery.map", row, ["no row"]),
        call("celery.map", "flows.offered", ["no row"]),
        call("celery.starmap", row, [["no row"]]),
        call("celery.chunks", row, [[["no row"]]], 1),
        call("celery.starmap", signature("celery.map"), [[row, ["no row"]]]),
        call(
            "flows.misbehave",
            "value_error",
            errbacks=[signature("flows.offered_twice", "no row", "no row")],
        ),
    ]
    for queue in "jobs", "system":
        broker.lpush(queue, *indirect)
        broker.lpush(queue, call("celery.starmap", signature("tests.add"), [[1, 2]]))
    passed = lambda: [event.task for event in read_task_events(processes.tasks.path)]  # noqa: E731
    wait_for(lambda: passed().count("tests.add") >= 4, what="the last of both queues")
    assert ended(submit("tests.add", x=1, y=2, owner=owner)).result_value == 3
    assert not {"flows.offered", "flows.offered_twice"} & set(passed())
    assert worker.is_alive and system.is_alive
