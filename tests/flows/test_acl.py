"""SECURITY.md's users of Redis: each may do its work, and nothing of the others'."""

import re
from collections.abc import Iterator
from socket import gethostname
from typing import Any

import pytest
from django.conf import settings
from django.test import override_settings
from django_celery_beat.models import IntervalSchedule, PeriodicTask
from redis.exceptions import NoPermissionError

from fleet.keys import queue_key
from jobs import submit
from jobs.management.stack import programs
from jobs.models import Owner
from jobs.system.notices.endpoints import make_endpoint, send_test
from tests.flows.processes import ROOT, Processes
from tests.flows.secured import Secured, secured
from tests.flows.test_remote import Stranger
from tests.flows.world import ended, publishing_to
from tests.receivers import receiver
from tests.waiting import wait_for

pytestmark = pytest.mark.proof


def users() -> list[str]:
    """Return the lines of the page's example."""
    [text] = re.findall(r"```text acl\n(.*?)```", (ROOT / "SECURITY.md").read_text(), re.DOTALL)
    return [line for line in text.splitlines() if line.startswith("user ")]


def url(server: Secured, user: str) -> str:
    return server.url(user, f"{user}-password")


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Secured]:
    """A Redis with these users; this process is the producer."""
    with secured(users()) as server, publishing_to(url(server, "producer"), monkeypatch):
        yield server


def refusals(server: Secured) -> list[dict[str, Any]]:
    """Return Redis's refusals since the last call, except those that the page mentions."""
    found = [
        {key: entry[key] for key in ("reason", "object", "username", "context")}
        for entry in server.admin.acl_log()
        if entry["object"] != "client"  # redis-py may not name itself, and continues
    ]
    server.admin.acl_log_reset()
    return found


def test_each_user_of_the_page_may_do_its_work(
    processes: Processes, owner: Owner, server: Secured
) -> None:
    """Submit, run, retry, beat's own sends, events and inspections: Redis refuses none."""
    processes.start_system_and_beat(REDIS_URL=url(server, "system"))
    processes.start_worker(slots=1, options=["--task-events"], REDIS_URL=url(server, "worker"))
    processes.ready(seconds=60)
    flower = Stranger(url(server, "flower"))
    try:
        run = submit("tests.add", x=1, y=2, owner=owner)
        later = submit("tests.add", x=3, y=4, owner=owner, countdown=1.0)
        fails = submit("tests.fail", times=5, owner=owner, max_attempts=2)
        assert [ended(each).state for each in (run, later, fails)] == [
            "succeeded",
            "succeeded",
            "failed",
        ]
        assert flower.ask("ping", f"worker@{gethostname()}") == {"ok": "pong"}

        sent = [run]

        def told() -> bool:
            sent.append(submit("tests.add", x=1, y=2, owner=owner))
            return bool(ended(sent[-1]) and any(flower.told(each) for each in sent))

        # A worker sends events once it has noticed that somebody listens.
        wait_for(told, seconds=60, what="an event")
        every = IntervalSchedule.objects.create(every=1, period=IntervalSchedule.SECONDS)
        entry = PeriodicTask.objects.create(
            name="of beat", task="tests.add", args="[1, 2]", queue="jobs", interval=every
        )
        wait_for(
            lambda: PeriodicTask.objects.get(pk=entry.pk).total_run_count > 1, what="beat's sends"
        )
        reader = server.client("reader", "reader-password")
        assert reader.hlen(queue_key("jobs", "accounts")) > 0
    finally:
        flower.close()
    assert refusals(server) == []


def test_the_users_of_the_page_send_a_webhook(
    processes: Processes, owner: Owner, server: Secured, no_endpoints: None
) -> None:
    """The system worker sends the message, and a worker of notices the request."""
    with receiver() as ears:
        allowed = {**settings.FAIRSHIFT, "HTTP_ALLOWED_HOSTS": (ears.place,)}
        with override_settings(FAIRSHIFT=allowed):
            given = {"name": "scene", "url": ears.url, "events": ["run.ended"]}
            send_test(make_endpoint(given, owner=owner).endpoint)
        environ = {"REDIS_URL": url(server, "worker"), "FAIRSHIFT_HTTP_ALLOWED_HOSTS": ears.place}
        processes.start(programs.notices_worker(), **environ)
        processes.start_system_and_beat(REDIS_URL=url(server, "system"))
        processes.ready(seconds=60)
        wait_for(lambda: bool(ears.got), seconds=60, what="the test event")
    assert refusals(server) == []


REFUSED = {
    "producer": [
        ("LPUSH", "system", "{}"),
        ("LPUSH", "inbox", "{}"),
        ("SADD", "_kombu.binding.celery.pidbox", "x"),
        ("SET", "fairshift:installation", "x"),
        ("PUBLISH", "/0.celery.pidbox", "{}"),
        ("SUBSCRIBE", "/0.celeryev/task.succeeded"),
    ],
    "worker": [("LPUSH", "system", "{}"), ("RPOP", "inbox"), ("PUBLISH", "/0.other", "{}")],
    "system": [("SET", "elsewhere", "x")],
    "flower": [("LPUSH", "jobs", "{}"), ("HGETALL", "fairshift:{jobs}:body"), ("LPOP", "system")],
    "reader": [
        ("SET", "fairshift:installation", "x"),
        ("LPUSH", "jobs", "{}"),
        ("EVAL", "return 1", "0"),
        ("PUBLISH", "/0.celery.pidbox", "{}"),
        ("SUBSCRIBE", "/0.celeryev/task.succeeded"),
    ],
}
OF_ALL = [
    ("FLUSHALL",),
    ("CONFIG", "GET", "*"),
    ("KEYS", "*"),
    ("ACL", "LIST"),
    ("DEBUG", "SLEEP", "0"),
]


@pytest.mark.parametrize("user", REFUSED)
def test_no_user_of_the_page_may_do_more(user: str) -> None:
    """Neither other users' keys and channels, nor the server's administration."""
    with secured(users()) as server:
        client = server.client(user, f"{user}-password")
        for command in (*REFUSED[user], *OF_ALL):
            with pytest.raises(NoPermissionError):
                client.execute_command(*command)
        client.close()
