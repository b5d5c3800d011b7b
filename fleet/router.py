"""Gives every task call an owner when Celery publishes it.

The owner is that of the call itself, else of the scope (`acting_for`), else of the task that makes
the call, else the shared owner. It is written into a header at the publish, because a caller's own
`headers=` would replace what a Celery router returns. The transport reads the header.
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
"""The owner of calls without another one."""

OWNER_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_TEXT: Final = re.compile(r"[^\x00-\x1f\x7f]*")
SUBMISSION_LIMIT: Final = 100
LOCK_LIMIT: Final = 200


class RouteError(ValueError):
    """A part of a route is invalid; `field` names it."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(field, problem)
        self.field = field
        self.problem = problem

    def __str__(self) -> str:
        return f"{self.field}: {self.problem}"


@dataclass(frozen=True, slots=True)
class Route:
    """A call's owner. `lock` is a name within the owner; `priority` is 0 to 9, higher first.

    Raises RouteError for values that the fair queues cannot store.
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
        """The lock's name in the queue, different for each owner; empty for none."""
        return f"{self.owner}:{self.lock}" if self.lock else ""

    def header(self) -> dict[str, Any]:
        """Return the message's header for it."""
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

    Scopes nest; only the innermost counts. Threads and async tasks have their own scope. Calls made
    by a called task inherit owner and submission, but not `priority` and `lock`. A call's own
    `priority` or owner wins. Raises RouteError before the block is entered.
    """
    with _within(Route(owner, _word(submission), lock, priority)):
        yield


def owner_header(
    owner: str, *, submission: str | int | None = None, lock: str = ""
) -> dict[str, dict[str, Any]]:
    """Return headers that give one call its owner, in any scope.

    As `task.apply_async(args, headers=owner_header("acme"))`. Raises RouteError.
    """
    return {HEADER: Route(owner, _word(submission), lock).header()}


@contextmanager
def acting_as(headers: Mapping[str, Any]) -> Iterator[None]:
    """Give the calls in this block, such as callbacks, the owner of a message."""
    route = route_of(headers)
    with _within(Route(route.owner, route.submission)):
        yield


def route_of(headers: Mapping[str, Any]) -> Route:
    """Return a message's route; the shared owner's if its header has none, or an invalid one."""
    return _read(headers.get(HEADER)) or Route()


def route_calls() -> None:
    """Give every task call of this process an owner at its publish. May be called again."""
    before_task_publish.connect(_on_publish, weak=False, dispatch_uid="fairshift.router")


def is_routing() -> bool:
    """Say whether `route_calls` was called in this process."""
    return any(receiver is _on_publish for _, receiver in before_task_publish.receivers or ())


def is_route(owner: str, *, lock: str) -> bool:
    """Say whether the owner's and the lock's name are valid."""
    is_lock = not lock or (len(lock) <= LOCK_LIMIT and bool(_TEXT.fullmatch(lock)))
    return is_lock and bool(OWNER_NAME.fullmatch(owner))


def is_sole_receiver() -> bool:
    """Say whether no other receiver sees a message before it is published."""
    return all(receiver is _on_publish for _, receiver in before_task_publish.receivers or ())


def _on_publish(
    headers: dict[str, Any] | None = None,
    properties: dict[str, Any] | None = None,
    **_signal: Any,
) -> None:
    # Nothing here may raise: Celery logs the error and publishes without an owner.
    if headers is None or _is_own_hint(headers):
        return
    own = _read(headers.get(HEADER))
    scope = _scope.get()
    headers[HEADER] = (own or scope or _inherited() or Route()).header()
    if own or scope is None or scope.priority is None or properties is None:
        return
    # A priority of the call or of its task stays. Celery's Redis has 0 first.
    if properties.get("priority") is None:
        properties["priority"] = HIGHEST - scope.priority


def _is_own_hint(headers: Mapping[str, Any]) -> bool:
    """Say whether this is a durable run's hint, not a copy of an admitted run's header."""
    if not is_hint(headers) or is_admitted(headers[HEADER]):
        return False
    return bool(headers[HEADER]["run"] == headers.get("id"))


def _inherited() -> Route | None:
    """Return owner and submission of the task that runs here, if any."""
    for task in reversed(_task_stack.stack):
        # A task that was called as a function, or eagerly, has a request without a route.
        for request in reversed(task.request_stack.stack):
            route = _read(getattr(request, HEADER, None))
            if route is not None:
                return Route(route.owner, route.submission)
    return None


def _read(facts: Any) -> Route | None:
    """Return the route in a header of any client; None for an invalid one."""
    if not isinstance(facts, Mapping) or "owner" not in facts:
        return None
    try:
        return Route(facts["owner"], _word(facts.get("submission")), facts.get("lock", ""))
    except RouteError:
        return None


def _word(submission: Any) -> Any:
    """Return a submission as text: those of durable runs are numbers."""
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
