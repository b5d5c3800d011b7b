"""The inbox on real processes: a reader that dies loses nothing, and does nothing twice."""

from collections.abc import Iterator

import pytest
import redis
from celery import Celery, current_app
from django.db import connection

from fleet.broker import inbox
from jobs.definitions.upsert import upsert_jobs
from jobs.models import AuditEntry, InboxMark, Job
from tests.audit import EMPTY_AUDIT
from tests.flows.processes import Processes
from tests.waiting import wait_for

pytestmark = pytest.mark.proof

COUNT = 500


@pytest.fixture
def sender() -> Iterator[Celery]:
    """Another service's app: it has the broker, and nothing of Fairshift."""
    app = Celery("elsewhere", broker=current_app.conf.broker_url, set_as_current=False)
    yield app
    app.close()


@pytest.mark.parametrize("point", ["inbox.before_commit", "inbox.after_commit"])
def test_a_reader_may_end_anywhere(
    processes: Processes, broker: redis.Redis, sender: Celery, point: str
) -> None:
    """Each message is applied, in the order of sending, and later changes stand."""
    for number in range(COUNT):
        job = {"key": f"k{number // 5}", "task": "tests.add", "arguments": {"x": 1, "y": 2}}
        job["priority"] = number % 5
        sender.send_task("fairshift.upsert_jobs", ("acme", [job]), queue="inbox")
    sender.send_task("fairshift.upsert_jobs", ("acme", [{"key": "bad"}]), queue="inbox")
    sender.send_task("fairshift.delete_jobs", ("acme", ["k0"]), queue="inbox")
    allowed = {"FAIRSHIFT_INBOX_ALLOWED": "acme:tests.add"}
    worker = processes.start_system(FAULT=f"{point}:1", **allowed)
    worker.ready()
    current_app.send_task("fairshift.system.read_inbox", queue="system")
    wait_for(lambda: "SIGKILL" in worker.log.read_text(), what="the reader's end")
    worker.kill()
    assert sum(map(broker.llen, inbox.lists("inbox"))) == COUNT + 2
    assert Job.objects.exists() == (point == "inbox.after_commit")
    if point == "inbox.after_commit":
        upsert_jobs(
            "acme",
            [{"key": "k1", "task": "tests.add", "arguments": {"x": 1, "y": 2}, "priority": 9}],
        )
    processes.start_system(**allowed)
    # As the pulse does while calls wait.
    current_app.send_task("fairshift.system.read_inbox", queue="system")
    lists = inbox.lists("inbox")
    wait_for(lambda: not broker.exists(*lists), seconds=40, what="an empty inbox")
    found = dict(Job.objects.values_list("key", "priority"))
    expected = {f"k{number}": 4 for number in range(1, COUNT // 5)}
    if point == "inbox.after_commit":
        expected["k1"] = 9
    assert found == expected
    assert AuditEntry.objects.filter(action="refuse jobs").count() == 1


@pytest.fixture(autouse=True)
def _nothing_is_left(processes: Processes) -> Iterator[None]:
    yield
    processes.stop()
    InboxMark.objects.all().delete()
    Job.objects.all().delete()
    with connection.cursor() as cursor:
        cursor.execute(EMPTY_AUDIT)
