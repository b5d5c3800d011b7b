"""A pool child without a pool: an app whose tasks are guarded, and their attempts run here."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import uuid4

from billiard.einfo import ExceptionWithTraceback
from celery import Celery, Task
from celery.app.trace import trace_task_ret
from kombu.utils.json import dumps

from fleet import HEADER, Report
from fleet.worker import child
from jobs.wiring import application


@dataclass
class Child:
    """A pool child: an app whose tasks are guarded."""

    app: Celery
    cleaned_count: int = 0
    published: list[str] = field(default_factory=list)

    def task(self, function: Callable[..., Any], **options: Any) -> Task:
        """Register and guard a task."""
        task = self.app.task(shared=False, name=f"tests.child.{uuid4()}", **options)(function)
        child.install({task.name: task}, replace(application(), leave_clean=self._clean))
        return task

    def fly(
        self,
        task: Task | Callable[..., Any],
        *args: Any,
        attempt: int = 1,
        callbacks: Sequence[Any] = (),
        closes_at: float | None = None,
        begins_by: float | None = None,
        **policy: Any,
    ) -> tuple[Report, Any]:
        """Run a durable run's attempt; return our report, and the error that Celery saw."""
        if not isinstance(task, Task):
            task = self.task(task)
        run_id = str(uuid4())
        facts = {"run": run_id, "token": 4, "attempt": attempt}
        facts |= {"closes_at": closes_at, "begins_by": begins_by}
        request = {
            "id": run_id,
            "task": task.name,
            "ignore_result": True,
            "delivery_info": {},
            HEADER: {**facts, "policy": {"max_attempts": 3, **policy}},
        }
        body = dumps([args, {}, {"callbacks": list(callbacks) or None}]).encode()
        failed, value, _, report = child.traced(
            trace_task_ret,
            task.name,
            run_id,
            request,
            body,
            "application/json",
            "utf-8",
            app=self.app,
        )
        assert (report.run_id, report.token) == (run_id, 4)
        error = value.exception if failed else None
        return report, error.exc if isinstance(error, ExceptionWithTraceback) else error

    def receive(self, task: Task, *args: Any) -> tuple[bool, Any]:
        """Run a plain message; return whether it failed, and its error or the text of its value."""
        request = {"id": str(uuid4()), "task": task.name, "delivery_info": {}, "is_eager": False}
        body = dumps([args, {}, {}]).encode()
        failed, value, _ = trace_task_ret(
            task.name, request["id"], request, body, "application/json", "utf-8", app=self.app
        )
        return bool(failed), value

    def _clean(self) -> None:
        self.cleaned_count += 1
