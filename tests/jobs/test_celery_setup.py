"""jobs/celery_setup.py: Fairshift's defaults lie under the project's settings of Celery."""

from typing import Any

import pytest
from celery import Celery
from kombu import Queue

from jobs import setup_celery

OURS = {"jobs", "system", "notices"}


def app_of(**settings: Any) -> Celery:
    """Return an app of a project that has these settings."""
    app = Celery("yours", set_as_current=False, fixups=[], config_source=settings)
    setup_celery(app)
    return app


def queue_of(app: Celery, task: str) -> str:
    """Return the queue that a call of a task goes to."""
    return str(app.amqp.router.route({}, task)["queue"].name)


@pytest.mark.parametrize(
    ("name", "default", "theirs"),
    [
        ("result_backend", "jobs.runs.result_backend:ResultBackend", "cache+memory://"),
        ("beat_scheduler", "jobs.system.beat:Scheduler", "their.scheduler:Scheduler"),
        ("task_default_queue", "jobs", "default"),
        ("task_acks_late", True, False),
        ("worker_prefetch_multiplier", 1, 4),
        ("task_ignore_result", False, True),  # Celery's: nobody waits for ever by our default
    ],
)
def test_what_the_project_sets_goes_first(name: str, default: Any, theirs: Any) -> None:
    """And without it ours does."""
    assert app_of().conf[name] == default
    assert app_of(**{name: theirs}).conf[name] == theirs


@pytest.mark.parametrize(
    ("settings", "names"),
    [
        ({}, OURS),
        ({"task_default_queue": "default"}, OURS | {"default"}),
        ({"task_queues": [Queue("mail"), Queue("system")]}, OURS | {"mail"}),
        ({"task_queues": {"mail": {"exchange": "mail"}}}, OURS | {"mail"}),
        ({"task_queues": ()}, OURS),
    ],
)
def test_queues_are_those_of_both(settings: dict[str, Any], names: set[str]) -> None:
    """In the form in which the project has them; none is there twice."""
    queues = app_of(**settings).amqp.queues
    assert set(queues) == names
    ours = [(queues[name].exchange.name, queues[name].routing_key) for name in ("jobs", "notices")]
    assert ours == [("jobs", "jobs"), ("notices", "notices")]


def test_settings_with_a_prefix_are_merged_as_well() -> None:
    """As Django's are; the versions of Celery look for such names in different orders."""
    theirs = {
        "CELERY_BROKER_TRANSPORT_OPTIONS": {"fair_queues": ["mail"], "socket_timeout": 9},
        "CELERY_TASK_QUEUES": [Queue("mail")],
        "CELERY_TASK_ROUTES": {"mail.*": {"queue": "mail"}},
    }
    app = Celery("yours", set_as_current=False, fixups=[])
    app.config_from_object(theirs, namespace="CELERY")
    setup_celery(app)
    options = app.conf.broker_transport_options
    assert options["fair_queues"] == ["jobs", "notices", "mail"]
    assert options["socket_timeout"] == 9
    assert set(app.amqp.queues) == OURS | {"mail"}
    assert queue_of(app, "mail.send") == "mail"
    assert queue_of(app, "fairshift.upsert_jobs") == "inbox"


def route(name: str, *_call: Any, **_options: Any) -> dict[str, str] | None:
    return {"queue": "mail"} if name.startswith("mail.") else None


@pytest.mark.parametrize(
    "theirs",
    [
        {"mail.*": {"queue": "mail"}},
        [{"mail.*": {"queue": "mail"}}],
        ([("mail.*", {"queue": "mail"})],),
        route,
        (route,),
    ],
)
def test_routes_are_those_of_both(theirs: Any) -> None:
    """In each form that Celery allows."""
    app = app_of(task_routes=theirs)
    assert queue_of(app, "mail.send") == "mail"
    assert queue_of(app, "fairshift.upsert_jobs") == "inbox"
    assert queue_of(app, "shop.greet") == "jobs"


def test_options_of_the_transport_are_merged_by_key() -> None:
    """The project's fair queues are fair beside ours."""
    theirs = {"fair_queues": ["reports", "jobs"], "visibility_timeout": 60, "master_name": "m"}
    options = app_of(broker_transport_options=theirs).conf.broker_transport_options
    assert options["fair_queues"] == ["jobs", "notices", "reports"]
    assert (options["visibility_timeout"], options["master_name"]) == (60, "m")
    assert (options["lease_seconds"], options["socket_timeout"]) == (30.0, 5)


def test_an_app_that_is_configured_already_gets_the_same() -> None:
    """A project may have read a setting before."""
    settings = {"task_queues": [Queue("mail")], "task_acks_late": False}
    app = Celery("yours", set_as_current=False, fixups=[], config_source=settings)
    assert app.conf.task_acks_late is False
    setup_celery(app)
    assert set(app.amqp.queues) == OURS | {"mail"}
    assert app.conf.task_acks_late is False and app.conf.worker_prefetch_multiplier == 1
