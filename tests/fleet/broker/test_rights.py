"""fleet/broker/rights.py: which commands of the scripts a user of Redis may not send."""

import re

import pytest
from redis.exceptions import NoPermissionError

from fleet import refused_commands
from tests.docs.pages import PROJECT
from tests.flows.secured import secured
from tests.flows.test_acl import users

NOT_TRIED = {"PUBLISH"}


def test_every_command_of_the_scripts_is_tried() -> None:
    """But for one, which workers would hear."""
    texts = [path.read_text() for path in (PROJECT / "fleet/transport/lua").rglob("*.lua")]
    used = {name for text in texts for name in re.findall(r"\bp?call\('([A-Z]+)'", text)}
    tried = re.findall(r"try\('([A-Z]+)'", (PROJECT / "fleet/broker/rights.lua").read_text())
    assert used - set(tried) == NOT_TRIED


def test_the_users_of_the_page_have_their_rights() -> None:
    """Those that work on the queue; nothing stays in Redis."""
    with secured(users()) as server:
        for user in ("producer", "worker", "system"):
            assert refused_commands(server.client(user, f"{user}-password"), "jobs") == [], user
        assert list(server.admin.scan_iter()) == []
        with pytest.raises(NoPermissionError):
            refused_commands(server.client("flower", "flower-password"), "jobs")


@pytest.mark.parametrize("taken", ["zadd", "hset", "rename"])
def test_a_right_that_misses_is_named(taken: str) -> None:
    """By the command."""
    with secured(users()) as server:
        server.admin.execute_command("ACL", "SETUSER", "worker", f"-{taken}")
        client = server.client("worker", "worker-password")
        assert refused_commands(client, "jobs") == [taken.upper()]
