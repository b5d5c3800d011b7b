"""Which tasks may be submitted, and which of them the admin and the API offer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from difflib import SequenceMatcher, get_close_matches
from fnmatch import fnmatchcase
from functools import cache
from typing import (
    Any,
    Concatenate,
    Final,
    Literal,
    NoReturn,
    ParamSpec,
    TypeVar,
    overload,
)

from celery import Task, current_app, shared_task
from celery.canvas import Signature

from fleet import NeverAwaited, is_never_awaited
from jobs.catalog.policies import CHECKS, checked_policy, refuse_unknown
from jobs.catalog.typed import METHODS, AnyTask, JobTask
from jobs.core.conf import setting
from jobs.core.errors import OptionError, RowRequired, UnknownTask

P = ParamSpec("P")
R_co = TypeVar("R_co", covariant=True)

NAME_LIMIT: Final = 255
NEAR: Final = 0.75
"""Least likeness, 0 to 1, of the own name of a task that is suggested."""
SYSTEM_TASKS: Final = "fairshift.system."
"""What the names of Fairshift's own rounds begin with."""
INTERNAL: Final = ("celery.", SYSTEM_TASKS)
"""Prefixes of the names of Celery's and Fairshift's internal tasks."""

# Celery's options that only plain Celery calls use, with Fairshift's.
REPLACED: Final = {
    "max_retries": "max_attempts",
    "autoretry_for": "retry_on",
    "dont_autoretry_for": "give_up_on",
    "retry_backoff": "backoff_seconds",
    "retry_backoff_max": "backoff_cap_seconds",
    "expires": "deadline_seconds",
    "time_limit": "time_limit_seconds",
    "soft_time_limit": "soft_time_limit_seconds",
}
# Celery's options that acknowledge, send back or publish a message by themselves.
BEHIND_THE_ROW: Final = frozenset(
    {"acks_late", "acks_on_failure_or_timeout", "acks_on_failure", "acks_on_timeout"}
    | {"reject_on_worker_lost", "retry_on_worker_lost"}
)
# Celery's options that only a plain Celery call reads.
PLAIN_ONLY: Final = frozenset(
    {"queue", "routing_key", "exchange", "serializer", "compression"}
    | {"retry_kwargs", "retry_jitter"}
)
CELERY_OPTIONS: Final = frozenset(
    {"name", "base", "bind", "typing", "shadow_name"}
    | {"pydantic", "pydantic_strict", "pydantic_context", "pydantic_dump_kwargs"}
    | {"ignore_result", "store_errors_even_if_ignored", "track_started", "throws", "trail"}
    | {"rate_limit", "send_events", "default_retry_delay"}
)


@dataclass(frozen=True, slots=True)
class Offer:
    """A task's title and description, and the default policies of its runs."""

    title: str
    description: str = ""
    plain: bool = False
    """Whether it may also run from a plain Celery message, without a row (`.delay()`)."""
    policy: Mapping[str, Any] = field(default_factory=dict)
    """What the task declares; the names are in `jobs.catalog.policies.CHECKS`."""


@dataclass(frozen=True, slots=True)
class OfferedTask:
    """A task in the admin form and in the API."""

    name: str
    task: Task
    offer: Offer


@overload
def job(
    function: Callable[P, R_co], *, label: str | None = None, plain: bool = False, **options: Any
) -> JobTask[P, R_co]: ...


@overload
def job(
    *, bind: Literal[True], label: str | None = None, plain: bool = False, **options: Any
) -> Callable[[Callable[Concatenate[Any, P], R_co]], JobTask[P, R_co]]: ...


@overload
def job(
    *, label: str | None = None, plain: bool = False, **options: Any
) -> Callable[[Callable[P, R_co]], JobTask[P, R_co]]: ...


def job(
    function: Callable[..., Any] | None = None,
    *,
    label: str | None = None,
    plain: bool = False,
    **options: Any,
) -> Any:
    """Register a function as a Celery task that is offered in the admin form and in the API.

    `label` is its title there, by default made from its name; the first line of its docstring is
    its description. Options are policies (`jobs.catalog.policies.CHECKS`) and those of Celery's
    `shared_task`. Raises OptionError at import for an unknown option or a bad value. `.delay()`
    and Celery's other ways to send the task raise RowRequired, unless it is `plain`.
    """
    if isinstance(function, str):
        raise OptionError("name", f"is a keyword: @job(name={function!r})")
    refuse_unknown(
        options, known={*CHECKS, *CELERY_OPTIONS, *REPLACED, *BEHIND_THE_ROW, *PLAIN_ONLY}
    )
    policy = checked_policy({name: value for name, value in options.items() if name in CHECKS})
    celery_options = {name: value for name, value in options.items() if name not in CHECKS}
    for name in () if plain else celery_options:
        if name in REPLACED:
            raise OptionError(
                name, f"is for plain Celery calls; use {REPLACED[name]}, or plain=True"
            )
        if name in PLAIN_ONLY:
            raise OptionError(name, "has no effect on a run; leave it out, or use plain=True")
        if name in BEHIND_THE_ROW:
            raise OptionError(
                name,
                "would move messages behind the row's back: Fairshift acknowledges after the"
                " outcome is committed, and its row decides on another attempt; leave it out,"
                " or use plain=True",
            )
    if not plain:
        # Celery makes every option an attribute of the task's class. A signature would be sent as a
        # plain message: by a chain, a group, or as the callback of another call.
        celery_options |= dict.fromkeys(("apply_async", "signature", "subtask"), _refuse_to_send)
    base = celery_options.get("base") or Task
    celery_options |= {name: verb for name, verb in METHODS.items() if not hasattr(base, name)}

    def registered(function: Callable[..., Any]) -> Any:
        if is_never_awaited(function, base):
            raise OptionError("task", str(NeverAwaited(function.__qualname__)))
        offer = Offer(
            title=label or _title(function.__name__),
            description=_first_line(function.__doc__),
            plain=plain,
            policy=policy,
        )
        return shared_task(**celery_options, fairshift_offer=offer)(function)

    return registered if function is None else registered(function)


def resolve(task: AnyTask) -> Task:
    """Return the registered task of this name, task object or `shared_task` proxy.

    A name causes no import. Raises UnknownTask, with the nearest name, for a task that the current
    Celery app lacks and for internal tasks; OptionError for a signature or an `async def`.
    """
    if isinstance(task, Signature):
        raise OptionError("task", "is a signature, whose arguments are not read; pass them here")
    name = task if isinstance(task, str) else getattr(task, "name", None)
    if not isinstance(name, str):
        # Probably a function that is no task.
        raise UnknownTask(getattr(task, "__qualname__", repr(task)[:80]), is_name=False)
    found = _registered().get(name)
    if found is None or _is_internal(name):
        name = name[:NAME_LIMIT]
        raise UnknownTask(name, _near_miss(name, _registered()))
    if is_never_awaited(found.run, type(found)):
        raise OptionError("task", str(NeverAwaited(name)))
    return found


def offer_of(task: Task) -> Offer:
    """Return the offer of a task; without `@job`, one from its name and docstring."""
    offer: Offer | None = getattr(task, "fairshift_offer", None)
    return offer or Offer(title=_title(task.name), description=_first_line(task.__doc__))


def offered() -> list[OfferedTask]:
    """Return the tasks that are made with `@job` or match a pattern of OFFERED_TASKS, by title."""
    found = [
        OfferedTask(name=name, task=task, offer=offer_of(task))
        for name, task in _registered().items()
        if _is_offered(task)
    ]
    return sorted(found, key=lambda item: (item.offer.title, item.name))


def is_offered(name: str) -> bool:
    """Say whether `offered` has a task of this name."""
    task = _registered().get(name)
    return task is not None and _is_offered(task)


def nearest_offered(name: str) -> str | None:
    """Return the task on offer whose name is most like this one; None if none is."""
    return _near_miss(name, [one.name for one in offered()])


def _is_offered(task: Task) -> bool:
    return not _is_internal(task.name) and (
        hasattr(task, "fairshift_offer")
        or any(fnmatchcase(task.name, pattern) for pattern in setting("OFFERED_TASKS"))
    )


def is_known(name: str) -> bool:
    """Say whether a task of this name is registered."""
    return name in _registered()


def never_awaited() -> list[str]:
    """Return the names of registered tasks that are `async def`, which nothing awaits."""
    tasks = _registered().items()
    return sorted(name for name, task in tasks if is_never_awaited(task.run, type(task)))


def requires_row(name: str) -> bool:
    """Say whether a task may run only with an admitted row: it is made with `@job`, not plain."""
    task = _registered().get(name)
    return hasattr(task, "fairshift_offer") and not offer_of(task).plain


def _refuse_to_send(task: Task, *_args: Any, **_options: Any) -> NoReturn:
    """Raise RowRequired for the caller: a worker would drop the message, and only log it."""
    raise RowRequired(task.name)


@cache
def _loaded() -> None:
    """Load the task modules that a worker loads when it boots.

    Without the worker's signal, which would run all system checks in the caller's transaction.
    """
    current_app.autodiscover_tasks(force=True)
    for module in current_app.loader.default_modules:
        current_app.loader.import_task_module(module)


def _registered() -> Mapping[str, Task]:
    _loaded()
    return current_app.tasks


def _is_internal(name: str) -> bool:
    return name.startswith(INTERNAL)


def _near_miss(name: str, among: Iterable[str]) -> str | None:
    # Full names of one module are alike: the task's own name decides.
    own = name.rpartition(".")[2]
    known = [
        candidate
        for candidate in among
        if not _is_internal(candidate)
        and SequenceMatcher(None, own, candidate.rpartition(".")[2]).ratio() >= NEAR
    ]
    return next(iter(get_close_matches(name, known, n=1, cutoff=0.4)), None)


def _title(name: str) -> str:
    return name.rpartition(".")[2].replace("_", " ").strip().capitalize()


def _first_line(docstring: str | None) -> str:
    return next(iter((docstring or "").strip().splitlines()), "")
