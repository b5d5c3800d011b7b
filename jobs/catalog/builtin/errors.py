"""Errors of the built-in tasks, without paths, queries, headers, bodies or command arguments:
these may hold secrets.
"""

from __future__ import annotations

from jobs.core.errors import FairshiftError


class HttpRequestFailed(FairshiftError):
    """No usable answer; another attempt may get one, after `retry_after` seconds if not None."""

    request: str
    problem: str
    retry_after: float | None = None

    def __str__(self) -> str:
        wait = "" if self.retry_after is None else f"; asked to wait {self.retry_after:g} s"
        return f"{self.request}: {self.problem}{wait}"


class HttpRequestRefused(FairshiftError):
    """The request is not allowed, or another attempt would get the same answer."""

    request: str
    problem: str

    def __str__(self) -> str:
        return f"{self.request}: {self.problem}"


class CommandFailed(FairshiftError):
    """A management command failed; `output` is the end of its output."""

    name: str
    problem: str
    output: str = ""

    def __str__(self) -> str:
        written = f"\n{self.output}" if self.output else ""
        return f"management command {self.name}: {self.problem}{written}"
