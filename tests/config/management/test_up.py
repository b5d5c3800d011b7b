"""config/management/commands/up.py: the whole stack in one terminal."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command

from config.demo.world import make_world
from config.management.commands.up import admin_login
from config.state import PROJECT
from tests.flows.web import status
from tests.processes import descendants, is_running
from tests.state_dirs import new_state_dir, remove_state_dir
from tests.waiting import wait_for

START_SECONDS = 60


@pytest.fixture
def state() -> Iterator[Path]:
    state = new_state_dir()
    yield state
    remove_state_dir(state)


@pytest.mark.proof  # a whole installation
def test_stack_runs_until_it_is_told_to_stop(state: Path) -> None:
    """Site and Flower answer behind logins; the end is an exit code 0 and no process left."""
    output = state / "output"
    with output.open("wb") as out:
        up = subprocess.Popen(
            [sys.executable, "manage.py", "up", "--concurrency", "1"],
            cwd=PROJECT,
            env=os.environ | {"FAIRSHIFT_STATE_DIR": str(state)},
            stdout=out,
            stderr=out,
        )
    try:

        def started() -> bool:
            assert up.poll() is None, output.read_text()
            return "Everything runs" in output.read_text()

        wait_for(started, seconds=START_SECONDS, what="the stack runs")
        text = output.read_text()
        site = re.search(r"^Site +(\S+) +login admin / \S+$", text, re.MULTILINE)
        flower = re.search(r"^Flower +(\S+) +login admin / (\S+)$", text, re.MULTILINE)
        assert site and flower
        assert status(f"{site[1]}admin/login/") == 200
        assert status(flower[1]) == 401
        assert status(flower[1], login=f"admin:{flower[2]}") == 200
        family = descendants(up.pid)
        assert len(family) >= 5
        up.send_signal(signal.SIGTERM)
        assert up.wait(300) == 0
        wait_for(lambda: not any(map(is_running, family)), what="every process has ended")
    finally:
        up.kill()
        up.wait()


@pytest.mark.django_db
def test_the_login_is_told_once_and_is_nobody_elses() -> None:
    """The demo's user is another one; a printed password stays valid, and can be changed."""
    make_world(large=[], small=[])
    name, password = admin_login().removeprefix("login ").split(" / ")
    admin = User.objects.get(username=name)
    assert admin.check_password(password) and name == "admin" and admin.is_superuser
    again = admin_login()
    assert again.startswith("login admin, with the password that it has")
    assert "manage.py changepassword admin" in again
    admin.refresh_from_db()
    assert admin.check_password(password)


@pytest.mark.parametrize(
    ("command", "option", "value"),
    [
        *(("up", "--concurrency", "257"), ("up", "--port", "70000"), ("up", "--flower-port", "0")),
        *(("up", "--grace", "-1"), ("demo", "--devices", "0"), ("demo", "--devices", "100001")),
        *(("demo", "--workers", "two"), ("demo", "--port", "70000")),
    ],
)
def test_impossible_numbers_are_refused(command: str, option: str, value: str) -> None:
    """The error names the option, its value and its limits, before anything starts."""
    with pytest.raises(CommandError, match=rf"{option}: '{value}' is no (whole )?number from \d"):
        call_command(command, option, value)
