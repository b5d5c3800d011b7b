"""What workers publish over Redis, and which commands they follow: no values, no orders."""

import json
from collections.abc import Iterator
from socket import gethostname
from typing import Any

import pytest
from celery import Celery

from jobs import submit
from jobs.core.states import State
from jobs.models import Owner, Run
from tests.control import EventLog, await_heard
from tests.flows.processes import Processes
from tests.flows.secured import ADMIN, Secured, secured
from tests.flows.world import ended, publishing_to, reached
from tests.waiting import wait_for

pytestmark = pytest.mark.proof

WORKER = f"worker@{gethostname()}"
SYSTEM = f"system@{gethostname()}"
VALUE = "vAlue-4711"


class Stranger(EventLog):
    """Has the broker's URL: receives every event, and sends any command."""

    def __init__(self, url: str) -> None:
        self.app = Celery("elsewhere", broker=url, set_as_current=False)
        super().__init__(self.app)

    def close(self) -> None:
        super().close()
        self.app.close()

    def told(self, run: Run) -> list[dict[str, Any]]:
        """Return the events of a run."""
        return [event for event in self.events if event.get("uuid") == str(run.id)]

    def ask(self, command: str, worker: str = WORKER, **arguments: Any) -> Any:
        """Return a worker's answer to a command; None when there is none."""
        replies = self.app.control.broadcast(
            command, arguments=arguments, destination=[worker], reply=True, timeout=5, limit=1
        )
        return replies[0][worker] if replies else None


@pytest.fixture
def redis(monkeypatch: pytest.MonkeyPatch) -> Iterator[Secured]:
    """A broker with a password, to which this process publishes as well."""
    with secured([]) as redis, publishing_to(redis.url("admin", ADMIN), monkeypatch):
        yield redis


@pytest.fixture
def stranger(redis: Secured) -> Iterator[Stranger]:
    stranger = Stranger(redis.url("admin", ADMIN))
    yield stranger
    stranger.close()


def start(processes: Processes, redis: Secured, **environ: str) -> None:
    """Start a worker of runs and the system's, over this broker, with events."""
    environ = {"REDIS_URL": redis.url("admin", ADMIN), **environ}
    processes.start_worker(slots=1, **environ)
    processes.start_system(**environ)
    processes.ready()
    with Celery("caller", broker=environ["REDIS_URL"], set_as_current=False) as app:
        await_heard(app, WORKER)


def test_events_and_inspections_of_a_run_have_no_values(
    processes: Processes, owner: Owner, redis: Secured, stranger: Stranger
) -> None:
    """Neither arguments nor results nor errors: only the row has them."""
    start(processes, redis)
    for ignore_result in (True, False):
        options = {"value": VALUE, "owner": owner, "ignore_result": ignore_result}
        slow = reached(submit("flows.secret", seconds=3, **options), State.RUNNING)
        waits = submit("flows.secret", **options)
        answers = [stranger.ask(command) for command in ("active", "reserved", "scheduled")]
        answers.append(stranger.ask("query_task", ids=[str(slow.id), str(waits.id)]))
        assert str(slow.id) in json.dumps(answers)
        assert VALUE not in json.dumps(answers)
        again = submit("flows.secret", fails=True, **options)
        bad = submit("flows.secret", fails=True, max_attempts=1, **options)
        assert [ended(run).state for run in (slow, waits)] == [State.SUCCEEDED, State.SUCCEEDED]
        assert ended(bad).error_message == f"cannot use {VALUE}"
        for run, told in (waits, "task-succeeded"), (again, "task-retried"), (bad, "task-failed"):
            wait_for(lambda run=run, told=told: told in types(stranger, run), what=told)
        again.cancel()
    assert VALUE not in json.dumps(stranger.events)


def types(stranger: Stranger, run: Run) -> set[str]:
    return {event["type"] for event in stranger.told(run)}


def test_a_worker_follows_no_order(
    processes: Processes, owner: Owner, redis: Secured, stranger: Stranger
) -> None:
    """It answers queries; the system's worker answers nothing."""
    start(processes, redis)
    worker, system = processes.started
    children = worker.children()
    orders: dict[str, dict[str, Any]] = {
        "shutdown": {},
        "pool_shrink": {"n": 1},
        "pool_grow": {"n": 5},
        "pool_restart": {},
        "autoscale": {"max": 0, "min": 0},
        "cancel_consumer": {"queue": "jobs"},
        "add_consumer": {"queue": "elsewhere"},
        "rate_limit": {"task_name": "tests.add", "rate_limit": "1/h"},
        "time_limit": {"task_name": "tests.add", "hard": 0.01},
        "revoke": {"task_id": "made-up"},
        "terminate": {"signal": "KILL", "task_id": "made-up"},
        "disable_events": {},
        "report": {},
    }
    for command, arguments in orders.items():
        refused = stranger.ask(command, **arguments)
        assert "FAIRSHIFT_REMOTE_COMMANDS" in refused["error"], command
    with stranger.app.connection_for_write() as connection:
        asks = stranger.app.events.Dispatcher(connection, hostname="x@y")
        asks.send("worker-elect", id="made-up", topic="task", action={}, cver=1)
    stranger.ask("hello", from_node="x@y", revoked=["made-up"])
    assert stranger.ask("revoked") == []
    assert stranger.ask("ping") == {"ok": "pong"}
    assert [queue["name"] for queue in stranger.ask("active_queues")] == ["jobs"]
    stranger.app.control.shutdown([SYSTEM])
    assert stranger.ask("ping", SYSTEM) is None
    assert ended(submit("tests.add", x=1, y=2, owner=owner)).result_value == 3
    assert worker.children() == children and system.is_alive
    assert "worker-elect" in {event["type"] for event in stranger.events}
    assert "worker-elect-ack" not in {event["type"] for event in stranger.events}


def test_a_setting_opens_commands_by_name(
    processes: Processes, redis: Secured, stranger: Stranger
) -> None:
    """Those and no others; no answer has a password, nor a setting that is not Celery's.

    One that is no command is refused at boot with the near miss.
    """
    start(processes, redis, FAIRSHIFT_REMOTE_COMMANDS="rate_limit, report, revoke")
    wrong = processes.start_worker("wrong", FAIRSHIFT_REMOTE_COMMANDS="rate_limits")
    assert "ok" in stranger.ask("rate_limit", task_name="tests.add", rate_limit="0")
    assert "error" in stranger.ask("shutdown")
    conf = stranger.ask("conf", with_defaults=True)
    assert conf["task_default_queue"] == "jobs"
    assert "REDIS_URL" not in conf and "DATABASES" not in conf
    for command in ("conf", "dump_conf", "stats", "report", "active_queues", "registered"):
        answer = stranger.ask(command)
        assert answer and "error" not in answer
        assert ADMIN not in json.dumps(answer), command
    wait_for(lambda: not wrong.is_alive, what="the end of a worker with a wrong setting")
    assert "Did you mean 'rate_limit'?" in wrong.log.read_text()
