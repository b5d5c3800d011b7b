"""Errors of the built-in tasks, without paths, queries, headers, bodies or command arguments:
these may hold secrets.
"""

from __future__ import annotations

from jobs.core.errors import FairshiftError


class HttpRequestFailed(FairshiftError):
    """No usable answer; another attempt may get one, after `retry_after` seconds if not None."""

    def __init__(self, request: str, problem: str, retry_after: float | None = None) -> None:
        super().__init__(request, problem, retry_after)
        self.request = request
        self.problem = problem
        self.retry_after = retry_after

    def __str__(self) -> str:
        wait = "" if self.retry_after is None else f"; asked to wait {self.retry_after:g} s"
        return f"{self.request}: {self.problem}{wait}"


class HttpRequestRefused(FairshiftError):
    """The request is not allowed, or another attempt would get the same answer."""

    def __init__(self, request: str, problem: str) -> None:
        super().__init__(request, problem)
        self.request = request
        self.problem = problem

    def __str__(self) -> str:
        return f"{self.request}: {self.problem}"


class CommandFailed(FairshiftError):
    """A management command failed; `output` is the end of its output."""

    def __init__(self, name: str, problem: str, output: str = "") -> None:
        super().__init__(name, problem, output)
        self.name = name
        self.problem = problem
        self.output = output

    def __str__(self) -> str:
        written = f"\n{self.output}" if self.output else ""
        return f"management command {self.name}: {self.problem}{written}"
