"""Which functions of the project are called at ends of runs and submissions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

from jobs.catalog.ends import RunEnd, SubmissionEnd
from jobs.core.errors import OptionError

NAME_LIMIT: Final = 255
OfRun = TypeVar("OfRun", bound=Callable[[RunEnd], Any])
OfSubmission = TypeVar("OfSubmission", bound=Callable[[SubmissionEnd], Any])

run_hooks: Final[dict[str, Callable[[RunEnd], Any]]] = {}
"""By name: module and function."""
submission_hooks: Final[dict[str, Callable[[SubmissionEnd], Any]]] = {}


def on_run_end(hook: OfRun) -> OfRun:
    """Have the system worker call this function with a RunEnd for each run that ends.

    After the commit, at least once: it may be called again, also at the same time as the first call
    ends. If it raises, it is called again later, ten times at most. Decorate a function in a module
    that workers import, such as an app's `tasks.py`. Raises OptionError for what has no name.
    """
    run_hooks[_name(hook)] = hook
    return hook


def on_submission_end(hook: OfSubmission) -> OfSubmission:
    """Have the system worker call this function with a SubmissionEnd once all its runs have ended.

    As `on_run_end`. A submission ends again if its runs are retried.
    """
    submission_hooks[_name(hook)] = hook
    return hook


def any_hooks() -> bool:
    """Say whether this process has imported a hook."""
    return bool(run_hooks or submission_hooks)


def _name(hook: Any) -> str:
    name = f"{getattr(hook, '__module__', '')}.{getattr(hook, '__qualname__', '')}"
    if not callable(hook) or "<" in name or name.endswith(".") or len(name) > NAME_LIMIT:
        raise OptionError(
            "hook",
            "is a function of a module, whose name is stored: no lambda, no inner function, and"
            f" {NAME_LIMIT} characters at most",
        )
    return name
