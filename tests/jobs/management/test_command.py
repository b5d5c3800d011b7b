"""jobs/management/command.py: hostile names and texts of rows reach no terminal as controls."""

import io
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from jobs import upsert_jobs
from jobs.client.terminal import printable
from jobs.management.commands.doctor import Command
from jobs.models import ApiToken, Job, Owner, Run
from jobs.owners.tokens import make_token
from tests.jobs.scenes import submitted

HOSTILE = "\x1b[2J\x9b31m\x07owned\u202e"


@pytest.fixture
def hostile(acme: Owner) -> Owner:
    """Rows that were written past every check."""
    make_token("robot", scopes=["read"], owner=acme)
    ApiToken.objects.update(name=HOSTILE)
    Owner.objects.update(name=HOSTILE, paused_reason=HOSTILE)
    upsert_jobs(acme, [{"key": "a", "task": "tests.add", "arguments": {"x": 1, "y": 2}}])
    Job.objects.update(name=HOSTILE)
    submitted(acme)
    Run.objects.update(task=HOSTILE)
    return acme


@pytest.mark.parametrize(
    "words",
    [
        ("fleet", "token", "list"),
        ("fleet", "token", "list", "--json"),
        ("fleet", "unknown-tasks"),
        ("status",),
        ("status", "--json"),
        ("doctor",),
    ],
    ids=" ".join,
)
@pytest.mark.usefixtures("broker")
def test_a_command_prints_no_control_of_a_row(
    hostile: Owner, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    """Each line is printable as it is."""
    out = io.StringIO()
    try:
        call_command(*words, stdout=out, stderr=out)
    except (SystemExit, CommandError) as error:
        out.write(str(error))
    said = capsys.readouterr()
    lines = (out.getvalue() + said.out + said.err).splitlines()
    assert lines and [line for line in lines if printable(line) != line] == []


def test_a_caller_in_code_gets_what_is_printed(
    acme: Owner, capsys: pytest.CaptureFixture[str]
) -> None:
    """In its own stream, and nowhere else."""
    out = io.StringIO()
    call_command("fleet", "token", "create", "robot", "--owner=acme", "--scopes=read", stdout=out)
    assert out.getvalue().startswith("fs_")
    assert capsys.readouterr().out == ""


def test_an_error_is_printed_without_controls(capsys: pytest.CaptureFixture[str]) -> None:
    """Also what Django prints for a command."""
    command: Any = Command()
    command.stderr.write(f"no: {HOSTILE}")
    command.stdout.write(f"a\nb: {HOSTILE}")
    said = capsys.readouterr()
    assert "\x1b[2J" not in said.out + said.err and said.out.splitlines()[0] == "a"
