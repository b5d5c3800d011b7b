"""Redis's password is rotated while processes run: each says so, and a restart mends it."""

import pytest

from jobs.models import Owner
from tests.flows.processes import Processes
from tests.flows.secured import Secured, secured
from tests.waiting import wait_for

pytestmark = pytest.mark.proof

OURS = "user ours on >old ~* &* +@all"


def rotate(server: Secured, *rules: str) -> None:
    """Change the user, and cut its connections, as a restart of Redis or a network would."""
    server.admin.execute_command("ACL", "SETUSER", "ours", *rules)
    server.admin.execute_command("CLIENT", "KILL", "USER", "ours")


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
        # By the poller, or by Celery's consumer if that was still busy with its start.
        wait_for(lambda: "ConnectionError" in later.log.read_text(), what="the cut to be noticed")
        assert not any("refuses the password" in one.log.read_text() for one in (worker, later))
