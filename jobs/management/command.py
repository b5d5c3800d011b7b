"""The base of our commands: no text that others wrote reaches the terminal as a control."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import nullcontext, redirect_stdout
from typing import Any

from django.core.management.base import BaseCommand, OutputWrapper

from jobs.client.terminal import printable


class Output(OutputWrapper):
    """A stream of a command that prints each line by `printable`, in one style."""

    # Django's signature, which is not that of its own base.
    def write(  # type: ignore[override]
        self,
        msg: str = "",
        style_func: Callable[[str], str] | None = None,
        ending: str | None = None,
    ) -> None:
        super().write("\n".join(map(printable, str(msg).split("\n"))), style_func, ending)

    def write_styled(self, line: str) -> None:
        """Print a line that has styles, whose texts are printable already."""
        super().write(line)


class SafeCommand(BaseCommand):
    """A command whose output and errors are printable."""

    def __init__(self, stdout: Any = None, stderr: Any = None, **given: Any) -> None:
        super().__init__(stdout, stderr, **given)
        self._print_to(stdout or sys.stdout, stderr or sys.stderr)

    def execute(self, *args: Any, **options: Any) -> Any:
        """Run the command; `stdout` and `stderr` are those of a caller in code."""
        stdout, stderr = options.pop("stdout", None), options.pop("stderr", None)
        self._print_to(stdout, stderr)
        # What a command prints by `say` goes there, too.
        with nullcontext() if stdout is None else redirect_stdout(stdout):
            return super().execute(*args, **options)

    def _print_to(self, stdout: Any, stderr: Any) -> None:
        if stdout is not None:
            self.stdout = Output(stdout)
        if stderr is not None:
            style, self.stderr = self.stderr.style_func, Output(stderr)
            self.stderr.style_func = style
