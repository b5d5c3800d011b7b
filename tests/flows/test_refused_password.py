"""Redis's password is rotated while processes run: each says so, and a restart mends it."""

import json
import os
from typing import Any

import pytest

from jobs.models import Owner, Worker
from tests.commands import python
from tests.flows.processes import Processes, environment
from tests.flows.secured import Secured, secured
from tests.waiting import wait_for

pytestmark = pytest.mark.proof

OURS = "user ours on >old ~* &* +@all"


def command(processes: Processes, *words: str, url: str) -> dict[str, Any]:
    environ = {**os.environ, **environment(processes.tasks.path), "REDIS_URL": url}
    done = python("manage.py", *words, "--json", "--timeout=60", environ=environ)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def rotate(server: Secured, *rules: str) -> None:
    """Change the user, and cut its connections, as a restart of Redis or a network would."""
    server.admin.execute_command("ACL", "SETUSER", "ours", *rules)
    server.admin.execute_command("CLIENT", "KILL", "USER", "ours")


def test_the_old_password_is_refused_and_named(processes: Processes, owner: Owner) -> None:
    """By the worker's log, beat's, doctor and status; the worker counts as one without Redis."""
    with secured([OURS]) as server:
        old, new = server.url("ours", "old"), server.url("ours", "new")
        processes.start_system(REDIS_URL=old)
        beat = processes.start_beat(REDIS_URL=old)
        worker = processes.start_worker("job", 1, REDIS_URL=old)
        processes.ready()
        rotate(server, "resetpass", ">new")
        for process in (worker, beat):
            wait_for(
                lambda process=process: (  # type: ignore[misc]
                    "Redis refuses the password" in process.log.read_text()
                ),
                seconds=60,
                what=f"the log of {process.name}",
            )
        codes = {one["code"] for one in command(processes, "status", url=old)["problems"]}
        assert "redis_password" in codes and "redis" not in codes
        found = {one["id"]: one["fix"] for one in command(processes, "doctor", url=old)["findings"]}
        assert "fairshift.E201" not in found
        assert "restart web processes, workers and beat" in found["fairshift.E206"]
        wait_for(Worker.objects.without_redis().count, seconds=120, what="the workers to be named")
        codes = {one["code"] for one in command(processes, "status", url=new)["problems"]}
        assert "without_redis" in codes and "redis_password" not in codes


def test_a_rotation_with_two_passwords_is_noticed_by_no_process(
    processes: Processes, owner: Owner
) -> None:
    """As SECURITY.md says it: the new one is added, processes restart, the old one is removed."""
    with secured([OURS]) as server:
        worker = processes.start_worker("old", 1, REDIS_URL=server.url("ours", "old"))
        processes.ready()
        rotate(server, ">new")
        worker.stop()
        later = processes.start_worker("new", 1, REDIS_URL=server.url("ours", "new"))
        processes.ready()
        rotate(server, "<old")
        wait_for(lambda: "Redis was lost" in later.log.read_text(), what="the cut to be noticed")
        assert not any("refuses the password" in one.log.read_text() for one in (worker, later))
