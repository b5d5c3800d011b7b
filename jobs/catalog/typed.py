"""A `@job` task for type checkers, and its typed submits: `task.using(owner=...).submit(...)`.

A checker cannot tell options from arguments in one call (PEP 612 allows no keyword between a task's
arguments), so here options are given first and the arguments alone after that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import (
    TYPE_CHECKING,
    Any,
    Final,
    Generic,
    ParamSpec,
    Protocol,
    TypeAlias,
    TypedDict,
    TypeVar,
    Unpack,
)

from asgiref.sync import sync_to_async
from celery import Task
from celery.canvas import Signature

from jobs.catalog.arguments import ArgumentSchema
from jobs.catalog.context import current_run
from jobs.core.errors import OptionError

if TYPE_CHECKING:  # a module of tasks may be imported before Django's apps
    from jobs.models import Owner, Run, Submission
    from jobs.models.verbs import Verbs

P = ParamSpec("P")
R_co = TypeVar("R_co", covariant=True)

ErrorNames = type[BaseException] | str | Iterable[type[BaseException] | str]


class SubmitOptions(TypedDict, total=False):
    """The options of a submit; `jobs.runs.options.Options` says what each means."""

    owner: Owner | str
    queue: str
    priority: int
    countdown: float
    eta: datetime
    deadline_seconds: float
    labels: Mapping[str, str]
    target: str
    lock: str
    idempotency_key: str | None
    window: str
    max_attempts: int
    backoff_seconds: float
    backoff_cap_seconds: float
    retry_on: ErrorNames
    give_up_on: ErrorNames
    soft_time_limit_seconds: float
    time_limit_seconds: float
    log_level: str
    ignore_result: bool
    link: Signature
    link_error: Signature


class Arguments(dict[str, Any], Generic[P]):
    """The arguments of one call by name, checked against the task's signature by type checkers."""


class JobTask(Protocol[P, R_co]):
    """A Celery task for type checkers: callable as its function; other attributes are Any."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co: ...

    def using(self, **options: Unpack[SubmitOptions]) -> TaskWithOptions[P]: ...

    def submit(self, *args: P.args, **kwargs: P.kwargs) -> Run: ...

    async def asubmit(self, *args: P.args, **kwargs: P.kwargs) -> Run: ...

    def arguments(self, *args: P.args, **kwargs: P.kwargs) -> Arguments[P]: ...

    def __getattr__(self, name: str, /) -> Any: ...


AnyTask: TypeAlias = Task | JobTask[..., Any] | str
"""What a submit takes: a task of `@job`, any other of Celery, or a name."""


@dataclass(frozen=True, slots=True)
class TaskWithOptions(Generic[P]):
    """A task and the options of its next submits. Immutable: `using` returns another one."""

    task: Task
    options: Mapping[str, Any] = field(default_factory=dict)

    def using(self, **options: Unpack[SubmitOptions]) -> TaskWithOptions[P]:
        """Return the task with these options too; a later value replaces an earlier one."""
        return TaskWithOptions(self.task, {**self.options, **options})

    def submit(self, *args: P.args, **kwargs: P.kwargs) -> Run:
        """Submit one run with these arguments, as `jobs.submit` does; return it."""
        arguments = self.arguments(*args, **kwargs)
        return _verbs().submit(self.task, arguments=arguments, **self._options())

    async def asubmit(self, *args: P.args, **kwargs: P.kwargs) -> Run:
        """Do what `submit` does, from async code."""
        return await sync_to_async(self.submit)(*args, **kwargs)

    def submit_many(
        self, calls: Iterable[Arguments[P]], *, label: str = "", chord: Signature | None = None
    ) -> Submission:
        """Submit a run for each call, as `jobs.submit_many` does; make them with `arguments`."""
        options = self._options()
        return _verbs().submit_many(self.task, calls, label=label, chord=chord, **options)

    async def asubmit_many(
        self, calls: Iterable[Arguments[P]], *, label: str = "", chord: Signature | None = None
    ) -> Submission:
        """Do what `submit_many` does, from async code."""
        return await sync_to_async(self.submit_many)(calls, label=label, chord=chord)

    def arguments(self, *args: P.args, **kwargs: P.kwargs) -> Arguments[P]:
        """Return these arguments by name, for `submit_many`; raise ArgumentError if one is wrong.

        Types are checked when they are submitted.
        """
        return Arguments(ArgumentSchema.of(self.task).by_name(args, kwargs))

    def _options(self) -> Mapping[str, Any]:
        if "owner" in self.options:
            return self.options
        # Only inside a run: a submit without an owner would else depend on its caller.
        if (run := current_run()) is None:
            raise OptionError(
                "owner",
                f"is required outside a run: {self.task.name} needs .using(owner=...) before"
                " .submit(...)",
            )
        return {"owner": run.owner, **self.options}


def _verbs() -> Verbs:
    from jobs.models.verbs import verbs

    return verbs()


def _plain(task: Task) -> TaskWithOptions[...]:
    return TaskWithOptions(task)


def _using(task: Task, **options: Unpack[SubmitOptions]) -> TaskWithOptions[...]:
    """Return the task with options for its next submits: `task.using(owner=...).submit(...)`."""
    return TaskWithOptions(task, options)


def _submit(task: Task, *args: Any, **kwargs: Any) -> Run:
    """Submit one run for the owner of the current run; raise OptionError outside of one."""
    return _plain(task).submit(*args, **kwargs)


async def _asubmit(task: Task, *args: Any, **kwargs: Any) -> Run:
    """Do what `submit` does, from async code."""
    return await _plain(task).asubmit(*args, **kwargs)


def _arguments(task: Task, *args: Any, **kwargs: Any) -> Arguments[...]:
    """Return these arguments by name, for `submit_many`."""
    return _plain(task).arguments(*args, **kwargs)


METHODS: Final[Mapping[str, Callable[..., Any]]] = {
    "using": _using,
    "submit": _submit,
    "asubmit": _asubmit,
    "arguments": _arguments,
}
"""What a `@job` task has beside Celery's methods; a base class of the project's comes first."""
