"""The management command task: what is allowed, what is kept, how it fails."""

import sys
from argparse import ArgumentParser
from collections.abc import Callable
from traceback import format_exception
from typing import Any

import pytest
from django.core import management
from django.core.management.base import BaseCommand, CommandError
from pytest_django import Settings

from jobs.catalog.builtin.command import OUTPUT_LIMIT, management_command
from jobs.catalog.builtin.errors import CommandFailed


class Scene(BaseCommand):
    """Does as its first argument says."""

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("act")
        parser.add_argument("--times", type=int, default=1)
        parser.add_argument("--token", default="")

    def handle(self, *_: Any, act: str, times: int, token: str, **__: Any) -> None:
        self.token = token
        getattr(self, act)(times)

    def write(self, times: int) -> None:
        for number in range(times):
            self.stdout.write(f"line {number}")
        self.stderr.write("a warning")

    def refuse(self, _times: int) -> None:
        self.stdout.write("half done")
        raise CommandError("disk is full")

    def repeat(self, _times: int) -> None:
        self.stdout.write(f"logged in with {self.token}")
        raise CommandError(f"token {self.token!r} has expired")

    def leave(self, times: int) -> None:
        self.stdout.write("half done")
        sys.exit(times)

    def break_down(self, _times: int) -> None:
        raise ZeroDivisionError


@pytest.fixture(autouse=True)
def scene(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """A command `scene`, allowed; `check` is not."""
    settings.FAIRSHIFT = {"MANAGEMENT_COMMANDS": ["scene", "missing"]}
    commands: Callable[[], dict[str, Any]] = management.get_commands
    monkeypatch.setattr(management, "get_commands", lambda: commands() | {"scene": Scene()})


def test_output_is_kept() -> None:
    """Both streams, in order, without colours."""
    result = management_command("scene", ["write", "--times", "2"])
    assert result == {"output": "line 0\nline 1\na warning\n", "is_cut": False}


def test_of_a_long_output_the_end_is_kept() -> None:
    """Errors stand at the end; a flood of lines costs no memory."""
    result = management_command("scene", ["write", "--times", "30000"])
    assert result["output"].endswith("line 29999\na warning\n")
    assert (len(result["output"]), result["is_cut"]) == (OUTPUT_LIMIT, True)


def test_a_command_that_is_not_allowed_is_refused() -> None:
    """By default none is; the error names the setting."""
    with pytest.raises(CommandFailed, match=r"check: is not allowed; .*MANAGEMENT_COMMANDS"):
        management_command("check")


def test_a_command_error_is_a_readable_failure() -> None:
    """With the end of what was written before."""
    with pytest.raises(CommandFailed) as caught:
        management_command("scene", ["refuse"])
    assert str(caught.value) == "management command scene: disk is full\nhalf done\n"


def test_an_exit_is_a_failure_unless_its_code_is_zero() -> None:
    """SystemExit would end the worker's child; it ends the attempt alone."""
    with pytest.raises(CommandFailed, match="ended with exit code 3"):
        management_command("scene", ["leave", "--times", "3"])
    assert management_command("scene", ["leave", "--times", "0"])["output"] == "half done\n"


@pytest.mark.parametrize(
    "args",
    [["--token", "s3cret"], ["--token=s3cret"], ["--tokn", "s3cret"], ["s3cret"], ["--s3cret=1"]],
)
def test_errors_do_not_repeat_arguments(args: list[str]) -> None:
    """Whoever sees a run's error need not be allowed to see its arguments."""
    with pytest.raises(CommandFailed) as caught:
        management_command("scene", ["repeat", *args])
    assert "s3cret" not in "".join(format_exception(caught.value))
