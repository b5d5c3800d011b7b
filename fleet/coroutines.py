"""Tasks that are `async def`: Celery calls them, awaits nothing, and calls that a success."""

from __future__ import annotations

from collections.abc import Callable
from inspect import iscoroutinefunction
from typing import Any

from celery import Task


class NeverAwaited(TypeError):
    """A task is `async def`: its body would not run."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name

    def __str__(self) -> str:
        return (
            f"task {self.name!r} is `async def`, which nothing awaits: make it a plain function"
            " that calls asgiref's async_to_sync"
        )


def is_never_awaited(run: Callable[..., Any], kind: type[Task]) -> bool:
    """Say whether a function is `async def`, and its class of tasks has no `__call__` of its own.

    Such a `__call__` may await it.
    """
    return iscoroutinefunction(run) and kind.__call__ is Task.__call__
