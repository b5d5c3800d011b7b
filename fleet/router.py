"""Whose a task call is: an owner for everything that Celery publishes.

The first that says so: the call itself, the scope in which it is made, the task that makes it.
Else it is the shared owner's. Written into a header when the message is published, because a
caller's own `headers=` would replace what a router returns; read back by the transport.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final

from celery._state import _task_stack
from celery.signals import before_task_publish

from fleet.contract import HEADER, HIGHEST, is_admitted, is_hint

SHARED: Final = "shared"
"""The owner of calls that nobody claims."""

OWNER_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_TEXT: Final = re.compile(r"[^\x00-\x1f\x7f]*")
SUBMISSION_LIMIT: Final = 100
LOCK_LIMIT: Final = 200


class RouteError(ValueError):
    """What was said of a call's owner cannot be; `field` names which part."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(field, problem)
        self.field = field
        self.problem = problem

    def __str__(self) -> str:
        return f"{self.field}: {self.problem}"


@dataclass(frozen=True, slots=True)
class Route:
    """For whom a call is made. `lock` is the owner's own word; `priority` is 0 to 9, higher first.

    Raises RouteError for what the fair queues cannot keep.
    """

    owner: str = SHARED
    submission: str = ""
    lock: str = ""
    priority: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.owner, str) or not OWNER_NAME.fullmatch(self.owner):
            raise RouteError(
                "owner",
                f"{self.owner!r:.120} is no name of 1 to 100 letters, digits, '.', '_' and '-' "
                "that begins with a letter or digit",
            )
        _refuse_text("submission", self.submission, most=SUBMISSION_LIMIT)
        _refuse_text("lock", self.lock, most=LOCK_LIMIT)
        if self.priority is not None and self.priority not in range(HIGHEST + 1):
            raise RouteError("priority", f"{self.priority!r:.120} is no whole number from 0 to 9")

    @property
    def lock_key(self) -> str:
        """The lock as a key of the whole queue: no two owners share one. Empty for none."""
        return f"{self.owner}:{self.lock}" if self.lock else ""

    def header(self) -> dict[str, Any]:
        """Return what the message's header says of it."""
        lock = {"lock": self.lock} if self.lock else {}
        return {"owner": self.owner, "submission": self.submission, **lock}


_scope: ContextVar[Route | None] = ContextVar("fairshift_scope", default=None)


@contextmanager
def acting_for(
    owner: str,
    *,
    submission: str | int | None = None,
    priority: int | None = None,
    lock: str = "",
) -> Iterator[None]:
    """Make the task calls in this block those of an owner; also as a decorator.

    Scopes nest, and the innermost counts as a whole. Threads and async tasks have a scope of
    their own. What a called task calls itself inherits owner and submission, and neither
    `priority` nor `lock`. A call with a `priority` or owner of its own keeps that.

    Raises RouteError, before the block is entered.
    """
    with _within(Route(owner, _word(submission), lock, priority)):
        yield


def owner_header(
    owner: str, *, submission: str | int | None = None, lock: str = ""
) -> dict[str, dict[str, Any]]:
    """Return headers that give one call its owner, whatever scope it is made in.

    As `task.apply_async(args, headers=owner_header("acme"))`. Raises RouteError.
    """
    return {HEADER: Route(owner, _word(submission), lock).header()}


@contextmanager
def acting_as(headers: Mapping[str, Any]) -> Iterator[None]:
    """Make the calls in this block those of the owner of a message: of its callbacks, say."""
    route = route_of(headers)
    with _within(Route(route.owner, route.submission)):
        yield


def route_of(headers: Mapping[str, Any]) -> Route:
    """Return whose a message is. One that says nothing, or nothing that can be, is shared."""
    return _read(headers.get(HEADER)) or Route()


def route_calls() -> None:
    """Give every task call of this process an owner when it is published. Repeating is harmless."""
    before_task_publish.connect(_on_publish, weak=False, dispatch_uid="fairshift.router")


def is_routing() -> bool:
    """Say whether calls of this process are given an owner: `route_calls` was called."""
    return any(receiver is _on_publish for _, receiver in before_task_publish.receivers or ())


def is_route(owner: str, *, lock: str) -> bool:
    """Say whether a queue can keep calls of this owner, under a lock of this name."""
    is_lock = not lock or (len(lock) <= LOCK_LIMIT and bool(_TEXT.fullmatch(lock)))
    return is_lock and bool(OWNER_NAME.fullmatch(owner))


def is_sole_receiver() -> bool:
    """Say whether nobody else looks at a message before it is published."""
    return all(receiver is _on_publish for _, receiver in before_task_publish.receivers or ())


def _on_publish(
    headers: dict[str, Any] | None = None,
    properties: dict[str, Any] | None = None,
    **_signal: Any,
) -> None:
    # Celery logs what a receiver raises, and publishes: so nothing here may raise.
    if headers is None or _is_own_hint(headers):
        return
    said = _read(headers.get(HEADER))
    scope = _scope.get()
    headers[HEADER] = (said or scope or _inherited() or Route()).header()
    if said or scope is None or scope.priority is None or properties is None:
        return
    # A priority of the call's own or of its task's stays. Celery's Redis has 0 first.
    if properties.get("priority") is None:
        properties["priority"] = HIGHEST - scope.priority


def _is_own_hint(headers: Mapping[str, Any]) -> bool:
    """Say whether this is a durable run's hint, and no copy of an admitted run's header."""
    if not is_hint(headers) or is_admitted(headers[HEADER]):
        return False
    return bool(headers[HEADER]["run"] == headers.get("id"))


def _inherited() -> Route | None:
    """Return owner and submission of the task that runs here, if any."""
    for task in reversed(_task_stack.stack):
        # A task that was called as a function, or eagerly, has a request that says nothing.
        for request in reversed(task.request_stack.stack):
            route = _read(getattr(request, HEADER, None))
            if route is not None:
                return Route(route.owner, route.submission)
    return None


def _read(facts: Any) -> Route | None:
    """Return what a header says, from whomever; None for nothing that can be."""
    if not isinstance(facts, Mapping) or "owner" not in facts:
        return None
    try:
        return Route(facts["owner"], _word(facts.get("submission")), facts.get("lock", ""))
    except RouteError:
        return None


def _word(submission: Any) -> Any:
    """Return a submission's name: those of durable runs are numbers."""
    return "" if submission is None else str(submission) if type(submission) is int else submission


def _refuse_text(field: str, value: Any, *, most: int) -> None:
    if not isinstance(value, str) or len(value) > most or not _TEXT.fullmatch(value):
        raise RouteError(
            field, f"{value!r:.120} is no text of at most {most} characters, all of them printable"
        )


@contextmanager
def _within(route: Route) -> Iterator[None]:
    token = _scope.set(route)
    try:
        yield
    finally:
        _scope.reset(token)
