"""jobs/system/unserved.py: queues that no worker takes from are named, by every face."""

from collections.abc import Iterator

import pytest
from celery import current_app
from kombu import Exchange, Queue

from jobs.checks import broker as broker_checks
from jobs.checks import wiring
from jobs.management.doctor import running
from jobs.management.status_lines import DEGRADED, HEALTHY, status_of
from jobs.system.verdict.operator import Operator
from jobs.system.verdict.reading import read
from tests.jobs.scenes import keep_beating, living_worker

pytestmark = pytest.mark.usefixtures("project")


@pytest.fixture
def project(committed: None, broker: object, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A project with a stock queue of its own, whose workers for runs are alive."""
    queues = [*current_app.conf.task_queues, declared("reports")]
    monkeypatch.setitem(current_app.conf, "task_queues", queues)
    keep_beating()
    living_worker("w1@here")
    living_worker("system@here", queues=["system"])
    before = dict(current_app.amqp.queues)
    yield
    # Celery adds those that it has published to.
    for name in current_app.amqp.queues.keys() - before.keys():
        del current_app.amqp.queues[name]


def declared(name: str) -> Queue:
    return Queue(name, Exchange(name), routing_key=name)


def routed(monkeypatch: pytest.MonkeyPatch, routes: object) -> None:
    monkeypatch.setitem(current_app.conf, "task_routes", routes)


def in_doctor() -> dict[str, str]:
    """Return what doctor says of workers and queues, by id."""
    return {str(one.id).removeprefix("fairshift."): one.msg for one in running.verdict()}


def in_checks() -> dict[str, str]:
    """Return what `check --deploy` says of queues, by id."""
    found = [*broker_checks.check_broker(), *wiring.check_wiring()]
    return {str(one.id).removeprefix("fairshift."): one.msg for one in found if one.id != OLD_REDIS}


OLD_REDIS = "fairshift.W205"
"""The embedded one is old."""


def exit_status() -> int:
    return status_of(read(Operator())).code


def test_messages_in_a_stock_queue_without_a_worker() -> None:
    """A call that nothing will run is no healthy installation."""
    assert (exit_status(), in_doctor(), in_checks()) == (HEALTHY, {}, {})
    current_app.send_task("shop.report", queue=declared("reports"))
    assert exit_status() == DEGRADED
    assert "Messages wait in queue reports" in in_doctor()["D316"]
    assert "Messages wait in queue 'reports'" in in_checks()["W206"]
    living_worker("r1@here", queues=["reports"])
    assert (exit_status(), in_doctor(), in_checks()) == (HEALTHY, {}, {})


@pytest.mark.parametrize(
    "routes",
    [
        {"shop.mail.*": "letters"},
        {"shop.mail.*": {"queue": "letters"}},
        {"shop.mail.*": {"queue": declared("letters")}},
        ([("shop.mail.*", {"queue": "letters"})],),
        (lambda _name, *_rest, **_more: None, {"shop.mail.*": {"queue": "letters"}}),
    ],
)
def test_a_route_to_a_queue_that_nothing_declares(
    monkeypatch: pytest.MonkeyPatch, routes: object
) -> None:
    """In each form that Celery takes; a worker that takes from it makes it well."""
    routed(monkeypatch, routes)
    assert in_checks() == {
        "W022": "shop.mail.* is routed to queue 'letters', which CELERY_TASK_QUEUES does not"
        " declare: no worker takes from it, unless it is started with --queues letters."
    }
    [problem] = status_of(read(Operator())).problems
    assert "routed to queue letters" in problem.text and not problem.is_bad
    living_worker("l1@here", queues=["letters"])
    assert exit_status() == HEALTHY
