"""The management command task: one of the commands that the settings allow."""

from __future__ import annotations

import io
from typing import Annotated, Any, Final

from django.core.management import CommandError, call_command
from pydantic import StringConstraints

from jobs.catalog.builtin.errors import CommandFailed
from jobs.catalog.registry import job
from jobs.core.conf import setting

SECRET_LENGTH: Final = 4
"""Fewest characters of an argument that is masked in error texts."""
OUTPUT_LIMIT: Final = 64 * 1024
"""Most characters of output that are kept: the end, where errors are."""
SHOWN_LIMIT: Final = 1_000


@job(label="Management command", name="fairshift.management_command", max_attempts=1)
def management_command(
    name: Annotated[str, StringConstraints(min_length=1, max_length=100)],
    args: list[str] = [],  # noqa: B006  only read
) -> dict[str, Any]:
    """Run one of Django's management commands that the settings allow and keep its output.

    `args` are those of a command line, an item each: `["--days", "30"]`. Output of Python's `print`
    goes to the worker's log. One attempt by default: few commands may be repeated. In
    the text of CommandFailed, `•••` replaces arguments of 4 or more characters: more people may see
    errors than arguments.
    """
    allowed = setting("MANAGEMENT_COMMANDS")
    if name not in allowed:
        problem = "is not allowed; add it to FAIRSHIFT['MANAGEMENT_COMMANDS']"
        raise CommandFailed(name, problem)
    output = Tail(limit=OUTPUT_LIMIT)
    try:
        call_command(name, *args, stdout=output, stderr=output, no_color=True)
    except CommandError as error:
        # Without the cause: a traceback would show its text.
        raise _failed(name, args, str(error), output) from None
    except SystemExit as error:
        # As for a shell: 0 and nothing mean success.
        if error.code not in (None, 0):
            raise _failed(name, args, f"ended with exit code {error.code}", output) from None
    return {"output": output.text(), "is_cut": output.is_cut}


def _failed(name: str, args: list[str], problem: str, output: Tail) -> CommandFailed:
    # Masked before cutting: a cut argument would not be found.
    written = without_arguments(output.text(), args)
    return CommandFailed(name, without_arguments(problem, args), written[-SHOWN_LIMIT:])


def without_arguments(text: str, args: list[str]) -> str:
    """Mask each argument in a text by `•••`; of `--name=value` also the value alone."""
    values = {part for arg in args for part in (arg, arg.partition("=")[2])}
    # The longest first: one may be part of another.
    for value in sorted(values, key=len, reverse=True):
        if len(value) >= SECRET_LENGTH:
            text = text.replace(value, "•••")
    return text


class Tail(io.TextIOBase):
    """A text stream that keeps the last `limit` characters written to it."""

    def __init__(self, *, limit: int) -> None:
        self.limit = limit
        self.parts: list[str] = []
        self.kept = 0
        self.written = 0

    @property
    def is_cut(self) -> bool:
        """True when the beginning is gone."""
        return self.written > self.limit

    def writable(self) -> bool:
        return True

    def write(self, text: str, /) -> int:
        self.parts.append(text)
        self.kept += len(text)
        self.written += len(text)
        # Only at twice the limit: cutting at each write would copy everything each time.
        if self.kept > 2 * self.limit:
            self.parts = [self.text()]
            self.kept = self.limit
        return len(text)

    def text(self) -> str:
        return "".join(self.parts)[-self.limit :]
