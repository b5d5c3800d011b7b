"""A backend for Django's task interface (DEP 14): its tasks are durable, fair runs.

    TASKS = {"default": {"BACKEND": "jobs.django_tasks.Backend", "OPTIONS": {"owner": "shop"}}}

`Backend` is for `django.tasks` of Django 6, and before that for the package django-tasks;
`BackportBackend` is for the package also where Django has its own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from math import ceil, floor
from typing import Any, Final
from uuid import UUID

from django.utils.module_loading import import_string

from jobs.catalog.context import current_run
from jobs.catalog.registry import job
from jobs.core.errors import OptionError
from jobs.core.states import ACTIVE, State
from jobs.models import Run
from jobs.models.run import AttemptOutcome
from jobs.runs.submission import submit

BACKEND, QUEUE, PRIORITY = "task_backend", "task_queue", "task_priority"
"""Labels of a run whose task has not the defaults: `get_result` returns the task as enqueued."""
OPTIONS: Final = {"owner", "queues", "max_attempts"}
_CLASS: Final = re.compile(r"([A-Za-z_][\w.]*)(?::|$)")


def _make(package: str) -> tuple[type, type]:
    """Return the classes of task and backend for `django.tasks` or `django_tasks`."""
    base: Any = import_module(f"{package}.base")
    backends: Any = import_module(f"{package}.backends.base")
    signals: Any = import_module(f"{package}.signals")
    errors: Any = import_module(f"{package}.exceptions")
    status = base.TaskResultStatus

    @dataclass(frozen=True, slots=True, kw_only=True)
    class FairshiftTask(base.Task):
        """Django's task with an owner, whose fair share and limits apply to its runs."""

        owner: str = ""

        def __post_init__(self) -> None:
            # No `super()`: a class with slots is made anew, and the cell has the first one.
            base.Task.__post_init__(self)
            _register(self)

        def using(self, *, owner: str | None = None, **changes: Any) -> Any:
            """Return the task with these changes, as Django's `using`; `owner` is a slug."""
            changed = base.Task.using(self, **changes)
            return changed if owner is None else replace(changed, owner=owner)

    class FairshiftBackend(backends.BaseTaskBackend):
        """Enqueues Django's tasks as runs. OPTIONS: `owner`, `queues`, `max_attempts`.

        `owner` is the slug for tasks that name none; `queues` maps Django's names of queues to
        those of Celery; `max_attempts` is by default Fairshift's MAX_ATTEMPTS.
        """

        task_class = FairshiftTask
        supports_defer = True
        supports_async_task = True
        supports_get_result = True
        supports_priority = True

        def __init__(self, alias: str, params: dict[str, Any]) -> None:
            super().__init__(alias, params)
            self.owner: str = self.options.get("owner", "")
            self.max_attempts: int | None = self.options.get("max_attempts")
            if unknown := self.options.keys() - OPTIONS:
                raise OptionError(
                    f"TASKS[{alias!r}]['OPTIONS']",
                    f"has {', '.join(sorted(unknown))}; known are {', '.join(sorted(OPTIONS))}",
                )

        def enqueue(self, task: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
            """Submit a run of the task, in the caller's transaction; return its result."""
            self.validate_task(task)
            # Django's error for arguments that JSON cannot hold, before anything is stored.
            blank = _result(task, self.alias, args=list(args), kwargs=dict(kwargs))
            run = submit(
                _register(task),
                owner=self._owner(task),
                arguments={"args": blank.args, "kwargs": blank.kwargs},
                queue=self._queue(task.queue_name),
                priority=run_priority(task.priority),
                eta=task.run_after,
                labels=_labels(task, base),
                max_attempts=self.max_attempts,
            )
            result = self._of_run(task, run)
            signals.task_enqueued.send(type(self), task_result=result)
            return result

        def get_result(self, result_id: str) -> Any:
            """Return the result of a run by its id; raise TaskResultDoesNotExist."""
            run = _find(result_id)
            task = None if run is None else _task_of(run.task)
            if run is None or not isinstance(task, base.Task):
                raise errors.TaskResultDoesNotExist(result_id)
            labels = run.labels
            if labels.get(BACKEND, base.DEFAULT_TASK_BACKEND_ALIAS) != self.alias:
                raise errors.TaskResultDoesNotExist(result_id)
            # As it was enqueued; the other fields are the function's own.
            enqueued = replace(
                task,
                backend=self.alias,
                queue_name=labels.get(QUEUE, base.DEFAULT_TASK_QUEUE_NAME),
                priority=int(labels.get(PRIORITY, base.DEFAULT_TASK_PRIORITY)),
                run_after=run.due_at,
            )
            is_ours = isinstance(enqueued, FairshiftTask)
            if is_ours and (enqueued.owner or run.owner.slug != self.owner):
                enqueued = replace(enqueued, owner=run.owner.slug)
            return self._of_run(enqueued, run)

        def _of_run(self, task: Any, run: Run) -> Any:
            """Return Django's view of a run."""
            args, kwargs = run.arguments
            given = kwargs or dict(zip(("args", "kwargs"), args, strict=False))
            attempts = [
                attempt for attempt in run.attempts if attempt.outcome != AttemptOutcome.GIVEN_BACK
            ]
            workers = [str(attempt.worker_id) for attempt in attempts]
            begun: list[Any] = [each.started_at or each.admitted_at for each in attempts]
            if run.state in ACTIVE:
                workers.append(str(run.worker_id))
                begun.append(run.started_at or run.admitted_at)
            texts = [(each.error_type, each.texts(run)[1]) for each in attempts if each.error_type]
            result = _result(
                task,
                self.alias,
                id=str(run.id),
                status=status(_STATUS.get(State(run.state), "READY")),
                enqueued_at=run.created_at,
                started_at=begun[0] if begun else None,
                last_attempted_at=begun[-1] if begun else None,
                finished_at=run.ended_at,
                args=given["args"],
                kwargs=given["kwargs"],
                errors=[
                    base.TaskError(exception_class_path=error_path(name, text), traceback=text)
                    for name, text in texts
                ],
                worker_ids=workers,
            )
            object.__setattr__(result, "_return_value", run.result_value)
            return result

        def _owner(self, task: Any) -> str:
            """Return the owner of a call: the task's, else that of OPTIONS, else the run's."""
            run = current_run()
            found: str = getattr(task, "owner", "") or self.owner or (run.owner if run else "")
            if not found:
                raise OptionError(
                    "owner",
                    f"is required: name it in TASKS[{self.alias!r}]['OPTIONS'], or with"
                    f" {task.name}.using(owner=...)",
                )
            return found

        def _queue(self, name: str) -> str:
            """Return the queue of Celery; empty is the setting JOBS_QUEUE."""
            own: str | None = self.options.get("queues", {}).get(name)
            return own or ("" if name == base.DEFAULT_TASK_QUEUE_NAME else name)

    def _result(task: Any, alias: str, **given: Any) -> Any:
        empty = dict.fromkeys(("enqueued_at", "started_at", "last_attempted_at", "finished_at"))
        facts = {"id": "", "status": status.READY, "errors": [], "worker_ids": [], **empty}
        return base.TaskResult(task=task, backend=alias, **{**facts, **given})

    def _register(task: Any) -> Any:
        return _celery_task(task.module_path, base.__name__.rpartition(".")[0])

    for made in (FairshiftTask, FairshiftBackend):
        made.__module__ = __name__
    return FairshiftTask, FairshiftBackend


@cache
def _celery_task(path: str, package: str) -> Any:
    """Return the Celery task of a function, by its path; it takes Django's args and kwargs."""
    base: Any = import_module(f"{package}.base")
    signals: Any = import_module(f"{package}.signals")
    normalize: Callable[[Any], Any] = base.normalize_json
    backends: Any = import_module(package).task_backends

    def call(args: list[Any], kwargs: dict[str, Any]) -> Any:
        task, run = import_string(path), current_run()
        if run is None:
            return normalize(task.call(*args, **kwargs))
        # The backend that enqueued it; the function names only the usual one.
        labels = Run.objects.values_list("labels", flat=True).get(id=run.run_id)
        backend = backends[labels.get(BACKEND, base.DEFAULT_TASK_BACKEND_ALIAS)]
        result = backend.get_result(str(run.run_id))
        signals.task_started.send(sender=type(backend), task_result=result)
        first = (base.TaskContext(task_result=result),) if task.takes_context else ()
        return normalize(task.call(*first, *args, **kwargs))

    call.__name__ = path.rpartition(".")[2]
    return job(name=path)(call)


def _labels(task: Any, base: Any) -> dict[str, str]:
    """Return what a result's task differs in from the defaults."""
    given = {
        BACKEND: (task.backend, base.DEFAULT_TASK_BACKEND_ALIAS),
        QUEUE: (task.queue_name, base.DEFAULT_TASK_QUEUE_NAME),
        PRIORITY: (task.priority, base.DEFAULT_TASK_PRIORITY),
    }
    return {name: str(value) for name, (value, usual) in given.items() if value != usual}


def run_priority(priority: int) -> int:
    """Return Fairshift's priority, 0 to 9, of Django's, -100 to 100: 0 is 5, the sign is kept."""
    return 5 + (ceil(priority * 4 / 100) if priority > 0 else floor(priority * 5 / 100))


def error_path(name: str, traceback: str) -> str:
    """Return the dotted path of an error's class, from the last line of its traceback."""
    lines = [line for line in traceback.splitlines() if line and not line.startswith(" ")]
    for line in reversed(lines):
        found = _CLASS.match(line)
        if found and found[1].rpartition(".")[2] == name:
            return found[1] if "." in found[1] else f"builtins.{name}"
    return f"builtins.{name}"


def _find(result_id: str) -> Run | None:
    try:
        run_id = UUID(str(result_id))
    except ValueError:
        return None
    return Run.objects.select_related("owner").filter(id=run_id).first()


def _task_of(path: str) -> Any:
    """Return the task at this path; None if there is none, or it is another one's."""
    try:
        return import_string(path)
    except ImportError:
        return None


_STATUS: Final = {
    **dict.fromkeys(ACTIVE, "RUNNING"),
    State.SUCCEEDED: "SUCCESSFUL",
    **dict.fromkeys((State.FAILED, State.CANCELLED, State.EXPIRED), "FAILED"),
}
"""Django's statuses; a run in any other state is READY."""


@cache
def _made(package: str) -> tuple[type, type]:
    return _make(package)


def __getattr__(name: str) -> Any:
    packages = {
        "Backend": "django.tasks" if find_spec("django.tasks") else "django_tasks",
        "BackportBackend": "django_tasks",
    }
    if name not in packages:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _made(packages[name])[1]
