"""Run an admitted run in this process, for tests: as a pool's child does, without one.

Time limits are not enforced, because no other process watches. Callbacks and chords of Celery are
sent as always, so they need the broker.
"""

from __future__ import annotations

from typing import Any, Final

from celery import Celery
from celery.app.trace import trace_task_ret

from fleet.contract import HEADER, Admission, Application, Report
from fleet.worker import child

_guarded: Final[set[int]] = set()
"""The ids of the apps whose tasks are guarded in this process."""


def run_here(app: Celery, task: str, admission: Admission, application: Application) -> Report:
    """Call the task of an admitted run; return what a worker would report of it.

    The application of the first call in a process is used for all of its app.
    """
    if id(app) not in _guarded:
        _guarded.add(id(app))
        child.install(app.tasks, application)
        for known in app.tasks.values():
            known.__trace__ = None  # one that was built before would not call the guard
    facts = admission.facts()
    request: dict[str, Any] = {
        **admission.headers,
        "id": admission.run_id,
        "task": task,
        "retries": admission.attempt - 1,
        "root_id": admission.run_id,
        "delivery_info": {"redelivered": False},
        "timelimit": (None, None),
        HEADER: facts,
    }
    body = admission.body.decode()
    *_celerys, report = child.traced(
        trace_task_ret,
        *(task, admission.run_id, request, body, "application/json", "utf-8"),
        app=app,
    )
    found: Report = report
    return found
