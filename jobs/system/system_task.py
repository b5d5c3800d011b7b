"""The class of Fairshift's own Celery tasks, which no `task_*` setting of a project changes.

Celery fills what a task leaves open from the project's settings, applies `task_annotations`, and
with `task_always_eager` runs a task in place of sending it. These settings are for the project's
tasks: a time limit of five minutes would kill a round that needs six, each time.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Final

from celery import Task
from celery.exceptions import AlwaysEagerIgnored
from kombu import Queue

from jobs.core.conf import setting

SOFT_LIMIT_SECONDS: Final = 1800
LONG_SOFT_LIMIT_SECONDS: Final = 11 * 3600
"""For rounds that may work for hours: less than the `visibility_timeout`, which starts another."""
GRACE_SECONDS: Final = 60
"""From the soft limit, which rolls back what is open, to the kill."""


class _Router:
    """Routes to the queue of the call, else to the system's; knows no `task_routes`."""

    def route(
        self,
        options: Mapping[str, Any],
        name: str,  # noqa: ARG002  these are what Celery hands in
        args: Any = (),  # noqa: ARG002
        kwargs: Any = None,  # noqa: ARG002
        task_type: Any = None,  # noqa: ARG002
    ) -> dict[str, Any]:
        queue = options.get("queue") or setting("SYSTEM_QUEUE")
        # Not from `task_queues`, which may lack it, or give it another exchange.
        return {**options, "queue": queue if isinstance(queue, Queue) else Queue(queue)}


class SystemTask(Task):
    """A task with its own value for each option that Celery would read from the settings.

    What fails is not tried again: beat, or the pulse, sends the next round.
    """

    abstract = True
    serializer = "json"
    compression = None
    priority = 0
    rate_limit = 0
    time_limit = SOFT_LIMIT_SECONDS + GRACE_SECONDS
    soft_time_limit = SOFT_LIMIT_SECONDS
    track_started = False
    acks_late = True
    acks_on_failure_or_timeout = True
    acks_on_failure = True
    acks_on_timeout = True
    reject_on_worker_lost = False
    retry_on_worker_lost = False
    ignore_result = True
    store_eager_result = False
    store_errors_even_if_ignored = False
    send_events = False
    typing = True

    @classmethod
    def annotate(cls) -> None:
        """Do nothing: `task_annotations` of a project are for its own tasks."""

    def apply_async(
        self,
        args: Sequence[Any] | None = None,
        kwargs: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> Any:
        """Send a message, also where `task_always_eager` is set."""
        ours = {
            "serializer": self.serializer,
            "priority": self.priority,
            "time_limit": self.time_limit,
            "soft_time_limit": self.soft_time_limit,
            "ignore_result": self.ignore_result,
            "retry": False,
        }
        with warnings.catch_warnings():
            # Celery warns that `send_task` sends: that is what it is called for.
            warnings.simplefilter("ignore", AlwaysEagerIgnored)
            return self.app.send_task(
                self.name, args, kwargs, router=_Router(), task_type=self, **{**ours, **options}
            )
