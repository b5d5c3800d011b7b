"""Celery's requests of admitted runs: each is made once, from its row.

Celery's consumer would make one of the hint, before anything else is known of the run.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from celery import Task, signals
from celery.app import trace
from celery.utils.imports import symbol_by_name
from celery.worker.request import Request, create_request_cls

from fleet.callbacks import guarded
from fleet.contract import HEADER, Admission
from fleet.transport.envelope import read_json
from fleet.worker.quiet import RECEIVED

logger = logging.getLogger(__name__)
received = logging.getLogger(RECEIVED)

NO_TIMES: Final = {"eta": None, "expires": None}
"""Times that only the row decides."""


class AdmittedRequests:
    """Makes and announces requests for one consumer, and settles messages of hints."""

    def __init__(self, consumer: Any) -> None:
        self._consumer = consumer
        self._classes: dict[str, type[Request]] = {}

    def may_skip_celery(self, task: str) -> bool:
        """Say whether Celery has nothing to do before an admission.

        It handles unknown tasks, limits rates, and calls a strategy that a task has of its own.
        """
        consumer = self._consumer
        if task not in consumer.strategies or consumer.app.tasks[task].Strategy != Task.Strategy:
            return False
        return consumer.disable_rate_limits or consumer.task_buckets[task] is None

    def make(self, message: Any, admission: Admission) -> Request:
        """Return the request of an admitted run, with the payload, limits and headers of its row.

        The arguments travel to the child decoded, once, and not as text beside their copy in the
        headers. Raises whatever an unreadable payload raises.
        """
        limits = {"timelimit": (admission.time_limit, admission.soft_time_limit), **NO_TIMES}
        own = {"id": admission.run_id, **limits, HEADER: admission.facts()}
        headers = {**message.headers, **admission.headers, **own}
        args, kwargs, embed = read_json(admission.body.decode())
        return self._make(message, headers, (args, kwargs, embed))

    def make_bare(self, message: Any, admission: Admission) -> Request:
        """Return a request without a payload, of a run that cannot begin; Celery stores no end."""
        headers = {name: message.headers[name] for name in ("task", HEADER)}
        headers |= {"id": admission.run_id, "ignore_result": True}
        return self._make(message, headers, ((), {}, {}))

    def _make(self, message: Any, headers: Mapping[str, Any], body: Any) -> Request:
        consumer, name = self._consumer, message.headers["task"]
        task = consumer.app.tasks[name]
        events = consumer.event_dispatcher
        made = self._classes.get(name)
        if made is None:
            made = self._classes[name] = create_request_cls(
                *(symbol_by_name(task.Request), task, consumer.pool, consumer.hostname, events),
                app=consumer.app,
            )
        request = made(
            message,
            on_ack=self._settling(message, message.ack_log_error),
            on_reject=self._settling(message, message.reject_log_error),
            app=consumer.app,
            hostname=consumer.hostname,
            eventer=events,
            task=task,
            connection_errors=consumer.connection_errors,
            body=body,
            headers=headers,
            decoded=True,
        )
        # The row decides whether it runs, not the result that Celery stored for an earlier attempt.
        request.delivery_info["redelivered"] = False
        return request

    def announce(self, request: Request) -> None:
        """Say that a run has been received, as Celery does of a message."""
        shown = {"args": request.argsrepr, "kwargs": request.kwargsrepr, "eta": None}
        said = {"id": request.id, "name": request.name, **shown}
        received.info(trace.LOG_RECEIVED, said, extra={"data": said})
        signals.task_received.send(sender=self._consumer, request=request)
        events = self._consumer.event_dispatcher
        if events and events.enabled and request.task.send_events:
            ids = {"root_id": request.root_id, "parent_id": request.parent_id}
            facts = {
                **shown,
                **ids,
                "retries": request.request_dict.get("retries", 0),
                "expires": None,
            }
            events.send("task-received", uuid=request.id, name=request.name, **facts)

    def notify_autoscaler(self, request: Request) -> None:
        """Call what waits for a request, such as Celery's autoscaler: the pool may have to grow."""
        for callback in self._consumer.on_task_message:
            guarded(callback)(request)

    def acknowledge(self, message: Any) -> None:
        """Let go of a message that is not needed: its row brings another one if necessary."""
        self._settling(message, message.ack_log_error)(logger, self._consumer.connection_errors)

    def requeue(self, message: Any) -> None:
        """Give a message back to the broker."""
        reject = self._settling(message, message.reject_log_error)
        reject(logger, self._consumer.connection_errors, requeue=True)

    def _settling(self, message: Any, act: Callable[..., None]) -> Callable[..., None]:
        """Return `act`; for a message of a stock queue, its call by the consumer's own loop."""
        is_leased = message.delivery_tag in getattr(message.channel, "leases", ())
        return act if is_leased else partial(self._consumer.call_soon, act)
