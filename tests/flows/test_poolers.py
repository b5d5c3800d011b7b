"""Submits through shared connections, and workers beside them."""

from pathlib import Path
from typing import Any, Final

import pytest

from jobs.core.states import State
from jobs.models import Owner, Run
from jobs.owners.tokens import make_token
from tests.flows.kept import drained
from tests.flows.pooled import DJANGOS_POOL, behind_pgbouncer
from tests.flows.processes import Processes
from tests.flows.web import site
from tests.jobs.api.conftest import ALL
from tests.waiting import wait_for

pytestmark = pytest.mark.proof

OPTIONS: Final = ("--max-tasks-per-child", "3")
"""Processes are forked all the time, while the worker is connected."""
SUBMITS: Final = """
from django.db import transaction
from jobs import submit, submit_many
from tests.tasks import add

submit(add, owner="acme", x=1, y=1)
submit_many(add, [{"x": number, "y": 2} for number in range(50)], owner="acme")
with transaction.atomic():
    submit(add, owner="acme", x=1, y=3)
    submit_many(add, [{"x": number, "y": 3} for number in range(5)], owner="acme")
try:
    with transaction.atomic():
        submit(add, owner="acme", x=1, y=4)
        submit_many(add, [{"x": number, "y": 4} for number in range(5)], owner="acme")
        raise ZeroDivisionError
except ZeroDivisionError:
    print("all", "submitted")
"""
COMMITTED: Final = 1 + 50 + 1 + 5


@pytest.mark.parametrize("way", ["PgBouncer", "Django's pool"])
def test_submits_are_committed_or_rolled_back(stack: Processes, verdict: Any, way: str) -> None:
    """In Python, and over HTTP. Workers run them: beside PgBouncer, or without Django's pool."""
    _, secret = make_token("submits", scopes=ALL, owner=Owner.objects.get(slug="acme"))
    with behind_pgbouncer() as behind:
        environ = behind if way == "PgBouncer" else DJANGOS_POOL
        assert "all submitted" in stack.run(SUBMITS, **environ)
        with site(stack, secret, **environ) as found:
            one = {"task": "tests.add", "arguments": {"x": 1, "y": 5}}
            many = {"task": "tests.add", "arguments": [{"x": n, "y": 6} for n in range(20)]}
            answers = [found.send("POST", "/runs", one), found.send("POST", "/submissions", many)]
            assert [answer.status for answer in answers] == [202, 202], answers
            again = found.send("POST", "/runs", one, **{"Idempotency-Key": "once"})
            same = found.send("POST", "/runs", one, **{"Idempotency-Key": "once"})
            assert again.body["id"] == same.body["id"]
    drained()
    runs = Run.objects.all()
    assert {run.state for run in runs} == {State.SUCCEEDED}
    assert len(runs) == COMMITTED + 1 + 20 + 1
    verdict(*runs)


def test_workers_of_a_project_with_djangos_pool(processes: Processes) -> None:
    """They run jobs as ever, also in processes that are forked while the worker is connected."""
    processes.start_worker(options=OPTIONS, **DJANGOS_POOL)
    processes.start_system_and_beat(**DJANGOS_POOL)
    processes.ready()
    assert "all submitted" in processes.run(SUBMITS, **DJANGOS_POOL)
    drained()
    assert set(Run.objects.values_list("state", flat=True)) == {State.SUCCEEDED}
    assert Run.objects.count() == COMMITTED
    assert "Traceback" not in processes.log_ends()


@pytest.mark.parametrize("queue", ["jobs", "system"])
def test_a_worker_behind_pgbouncer_is_refused(db: None, tmp_path: Path, queue: str) -> None:
    """With a sentence that names the pooler and the way out; also with the mark of the web."""
    with behind_pgbouncer() as environ:
        worker = Processes(tmp_path).start_worker(queue=queue, **environ)
        wait_for(lambda: not worker.is_alive, seconds=60, what="the worker's end")
    log = worker.log.read_text()
    assert "shares connections between transactions" in log
    assert "DATABASES" in log and "pool_mode = session" in log
    assert "Traceback" not in log and " ready." not in log
