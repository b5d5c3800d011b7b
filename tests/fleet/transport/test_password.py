"""fleet/transport/password.py: a refused password is said as that, wherever Redis is spoken of."""

import json
from collections.abc import Iterator
from types import SimpleNamespace

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from fleet import Broker, BrokerUnavailable
from jobs.checks import broker as checks
from jobs.management.doctor import broker as doctor
from jobs.management.doctor.part import Part
from jobs.models import Owner, Run
from jobs.pages.metrics import health
from jobs.system.verdict.operator import Operator
from jobs.system.verdict.reading import read
from jobs.system.verdict.rules import problems_of
from tests.flows.secured import ADMIN, Secured, secured
from tests.flows.world import publishing_to
from tests.jobs.scenes import living_worker, submitted
from tests.waiting import wait_for

OLD = "user ours on >old ~* &* +@all"


@pytest.fixture(scope="module")
def server() -> Iterator[Secured]:
    with secured([OLD]) as server:
        yield server


def connect(_part: Part) -> None:
    with doctor.reached(5):
        pass


WRONG = ["redis://ours:new@127.0.0.1:{port}/0", "redis://127.0.0.1:{port}/0"]
"""A wrong password, and none."""


@pytest.mark.django_db
@pytest.mark.parametrize("url", WRONG)
def test_every_face_says_it_with_the_fix(
    acme: Owner, server: Secured, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And none says that Redis is away, or has to be started."""
    [run] = submitted(acme)
    living_worker()
    monkeypatch.setattr(health, "SECONDS", 10.0)
    with publishing_to(url.format(port=server.port), monkeypatch) as app:
        monkeypatch.setattr(checks, "current_app", app)
        proxy = SimpleNamespace(_get_current_object=lambda: app)
        monkeypatch.setattr(doctor, "current_app", proxy)
        [problem] = [one for one in problems_of(read(Operator()).facts) if "redis" in one.code]
        assert "Redis refuses the password" in problem.text
        assert "Put the new one into CELERY_BROKER_URL" in problem.todo
        assert Run.objects.get(id=run.id).why_waiting() == (
            "Redis refuses the password of this process; in queue 'jobs', next of acme's runs."
        )
        ready = json.loads(Client().get("/health/ready").content)
        assert (ready["is_ready"], ready["redis"]) == (True, "refuses the password")
        with pytest.raises(CommandError, match="The broker refuses the password"):
            call_command("fleet", "owners")
        part = Part(connect, checks.unreachable)
        part()
        for found in (*checks.check_broker(), *part.messages):
            assert found.id == "fairshift.E206" and "Redis refuses the password" in found.msg
            assert found.hint and "restart web processes, workers and beat" in found.hint
        assert len(part.messages) == 1


def test_a_password_that_changes_is_noticed_by_new_connections(
    server: Secured, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Open ones go on; with the old one back, the process publishes again without a restart."""
    url = server.url("ours", "old")
    with publishing_to(url, monkeypatch) as app:
        broker = Broker(app)

        def answers() -> bool:
            try:
                with broker.client(timeout=5) as client:
                    return bool(client.ping())
            except BrokerUnavailable:
                return False

        assert answers()
        server.admin.execute_command("ACL", "SETUSER", "ours", "resetpass", ">new")
        assert answers() and not broker.refuses_password
        server.admin.execute_command("CLIENT", "KILL", "USER", "ours")
        wait_for(lambda: not answers() and broker.refuses_password, what="the refusal")
        server.admin.execute_command("ACL", "SETUSER", "ours", "resetpass", ">old")
        wait_for(answers, what="an answer")
        assert not broker.refuses_password
    assert server.client("admin", ADMIN).ping()
