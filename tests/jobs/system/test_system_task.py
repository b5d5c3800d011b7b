"""jobs/system/system_task.py: no `task_*` setting of a project changes what a system task does."""

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any, Final

import pytest
import redis
from celery import Celery, Task, current_app
from celery.app.defaults import NAMESPACES
from celery.worker.request import Request
from celery.worker.strategy import hybrid_to_proto2
from django_celery_results.models import TaskResult
from kombu import Exchange, Queue

from jobs import tasks
from jobs.system.system_task import SystemTask

pytestmark = pytest.mark.usefixtures("committed")

QUEUE: Final = "system"


def _elsewhere(*_given: Any, **_facts: Any) -> dict[str, Any]:
    return {"queue": "elsewhere", "priority": 7, "exchange": "elsewhere", "routing_key": "x"}


def _broken(*_given: Any, **_facts: Any) -> None:
    raise AssertionError("an annotation of the project was applied")


HOSTILE: Final[Mapping[str, Any]] = {
    # How a task runs.
    "task_acks_late": False,
    "task_acks_on_failure": False,
    "task_acks_on_failure_or_timeout": False,
    "task_acks_on_timeout": False,
    "task_always_eager": True,
    "task_annotations": {
        "*": {"rate_limit": "1/h", "time_limit": 1, "acks_late": False, "run": _broken},
        "tests.round": {"ignore_result": False, "serializer": "pickle", "@run": _broken},
    },
    "task_allow_error_cb_on_chord_header": True,
    "task_default_rate_limit": "1/h",
    "task_eager_propagates": True,
    "task_ignore_result": False,
    "task_reject_on_worker_lost": True,
    "task_remote_tracebacks": True,
    "task_retry_on_worker_lost": True,
    "task_soft_time_limit": 1,
    "task_store_eager_result": True,
    "task_store_errors_even_if_ignored": True,
    "task_time_limit": 1,
    "task_track_started": True,
    # How it is sent.
    "task_compression": "zlib",
    "task_create_missing_queue_exchange_type": "topic",
    "task_create_missing_queue_type": "quorum",
    "task_create_missing_queues": False,
    "task_default_delivery_mode": 1,
    "task_default_exchange": "elsewhere",
    "task_default_exchange_type": "topic",
    "task_default_priority": 9,
    "task_default_queue": "elsewhere",
    "task_default_queue_type": "quorum",
    "task_default_routing_key": "elsewhere",
    "task_inherit_parent_priority": True,
    "task_protocol": 1,
    "task_publish_retry": True,
    "task_publish_retry_policy": {"max_retries": 0, "interval_start": 3600},
    "task_queue_max_priority": 3,
    "task_queues": [Queue("elsewhere", Exchange("elsewhere", type="fanout"))],
    "task_repr_maxlevels": 0,
    "task_routes": [_elsewhere],
    "task_send_sent_event": True,
    "task_serializer": "pickle",
    # What becomes of its result: a system task stores none.
    "result_accept_content": ["pickle"],
    "result_backend": "django-db",
    "result_backend_always_retry": True,
    "result_backend_base_sleep_between_retries_ms": 60_000,
    "result_backend_max_retries": 0,
    "result_backend_max_sleep_between_retries_ms": 60_000,
    "result_backend_transport_options": {"global_keyprefix": "elsewhere"},
    "result_cache_max": 1,
    "result_chord_expires": 1.0,
    "result_chord_join_timeout": 0.001,
    "result_chord_retry_interval": 3600.0,
    "result_compression": "zlib",
    "result_exchange": "elsewhere",
    "result_exchange_type": "topic",
    "result_expires": timedelta(seconds=1),
    "result_extended": True,
    "result_failure_expires": 1.0,
    "result_persistent": True,
    "result_serializer": "pickle",
    # Times of a message.
    "enable_utc": False,
    "timezone": "Asia/Kathmandu",
}
"""Each setting of Celery about tasks, results and times, with a value that would change a task."""

CALL: Final = {"args": [2], "queue": QUEUE, "expires": 3600}


class Project:
    """A project with settings of its own for Celery, and a system task."""

    def __init__(self, **conf: Any) -> None:
        self.app = Celery("scene", set_as_current=False)
        self.app.config_from_object("django.conf:settings", namespace="CELERY")
        self.app.conf.update(conf)
        self.ran: list[int] = []

        def body(number: int) -> int:
            self.ran.append(number)
            return number

        self.task = self.app.task(base=SystemTask, name="tests.round", shared=False)(body)

    def received(self) -> Request:
        """Take the message as a worker of these settings does."""
        with self.app.connection_for_read() as connection:
            message = connection.default_channel.basic_get(QUEUE)
            assert message is not None, "a message waits in the system's queue"
            message.ack()
        self.priority = message.properties["priority"]
        self.content_type = message.content_type
        as_sent: dict[str, Any] = {"body": message.body, "headers": message.headers}
        if "args" in message.payload:
            body, headers, decoded, utc = hybrid_to_proto2(message, message.payload)
            as_sent = {"body": body, "headers": headers, "decoded": decoded, "utc": utc}
        return Request(message, app=self.app, task=self.task, **as_sent)

    def play(self) -> dict[str, Any]:
        """Send the task, carry its message out; return what a worker and an operator can see."""
        sent = self.task.apply_async(**CALL)
        assert self.ran == [], "a call sends"
        request = self.received()
        request.execute()
        return {
            "ran": self.ran,
            "content_type": self.content_type,
            "priority": self.priority,
            "limits": request.time_limits,
            "expires": request.expires is not None,
            "ignores": request.ignore_result,
            "stored": TaskResult.objects.filter(task_id=sent.id).count(),
            **{name: getattr(self.task, name) for name, _ in Task.from_config},
        }


@pytest.fixture
def playing(broker: redis.Redis) -> Iterator[Any]:
    """Play a system task in a project with these settings."""
    projects: list[Project] = []

    def play(**conf: Any) -> dict[str, Any]:
        projects.append(Project(**conf))
        return projects[-1].play()

    yield play
    for project in projects:
        project.app.close()


@pytest.mark.parametrize("name", HOSTILE)
def test_a_setting_of_the_project_changes_nothing(playing: Any, name: str) -> None:
    """A system task is sent, runs once, and ends as with the settings that Fairshift ships."""
    assert playing(**{name: HOSTILE[name]}) == playing()


def test_every_setting_about_tasks_and_results_is_in_the_table() -> None:
    """A setting that a new version of Celery brings is named by this."""
    settings = {f"{part}_{name}" for part in ("task", "result") for name in NAMESPACES[part]}
    assert settings - HOSTILE.keys() == set()


def test_every_task_of_the_system_is_of_this_kind() -> None:
    """And leaves no option to the project's settings.

    The soft limit ends a round with its transaction; the hard one is for a round that hangs.
    """
    found = [
        task
        for name, task in current_app.tasks.items()
        if name.startswith("fairshift.system.") and type(task).__module__.startswith("jobs.")
    ]
    assert tasks.roll_up.name in {task.name for task in found}
    for task in found:
        assert isinstance(task, SystemTask), task.name
        left = [name for name, _ in Task.from_config if getattr(type(task), name) is None]
        assert left == [], task.name
        assert 0 < task.soft_time_limit < task.time_limit, task.name
