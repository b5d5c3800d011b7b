"""jobs/checks/wiring.py: what a project forgot is named, with the line that is missing.

Whole projects without one of the lines are in tests/flows/test_own_project.py.
"""

from types import SimpleNamespace
from typing import Any

import pytest
from celery import Celery
from celery.exceptions import ImproperlyConfigured
from celery.signals import before_task_publish, worker_init
from kombu import Exchange, Queue
from kombu import transport as kombu_transport
from pytest_django import Settings

import fleet
from fleet.versions import TESTED
from jobs.checks import boot, wiring
from jobs.wiring import application

GOOD = {
    "broker_url": "redis://127.0.0.1:1/0",
    "broker_transport_options": {"fair_queues": ["jobs"]},
    "result_backend": "jobs.runs.result_backend:ResultBackend",
    "task_default_queue": "jobs",
    "task_queues": [Queue(name, Exchange(name), routing_key=name) for name in ("jobs", "system")],
    "beat_scheduler": "jobs.system.beat:Scheduler",
}


def app_with(**changes: Any) -> Celery:
    """Return an app that is as it should be, but for some settings; None leaves one out."""
    given = {name: value for name, value in (GOOD | changes).items() if value is not None}
    return Celery("yours", set_as_current=False, fixups=[], config_source=given)


def ids(app: Celery) -> list[str | None]:
    return [message.id for message in [*wiring._process(app), *wiring._configuration(app)]]


def test_our_own_wiring_passes() -> None:
    """In this project, which is wired as the page says."""
    assert wiring.check_wiring() == [] and wiring.check_feeds() == []


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"broker_url": None}, ["fairshift.E011"]),
        ({"broker_url": "nonesuch://"}, ["fairshift.E011"]),
        ({"result_backend": None}, ["fairshift.E014"]),
        ({"result_backend": "django-db"}, ["fairshift.E014"]),
        ({"result_backend": "nonesuch"}, ["fairshift.E014"]),
        ({"task_queues": None}, ["fairshift.E015"]),
        ({"task_queues": None, "task_default_queue": None}, ["fairshift.E015"]),
        ({"task_queues": [Queue("jobs"), Queue("system")]}, ["fairshift.E016"]),
        ({"task_default_queue": None}, ["fairshift.E017"]),
        ({"broker_transport_options": None}, ["fairshift.E018"]),
        ({"beat_scheduler": None}, ["fairshift.E019"]),
        ({"beat_scheduler": "nonesuch"}, ["fairshift.E019"]),
        ({"beat_scheduler": "django_celery_beat.schedulers:DatabaseScheduler"}, ["fairshift.E019"]),
    ],
)
def test_a_setting_that_is_missing_or_wrong_is_named(
    changes: dict[str, Any], expected: list[str]
) -> None:
    """Each by its own id, and nothing besides."""
    assert ids(app_with(**changes)) == expected


def test_the_stock_transport_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Redis alone is not enough: owners would not share the workers."""
    monkeypatch.setitem(
        kombu_transport.TRANSPORT_ALIASES, "redis", "kombu.transport.redis:Transport"
    )
    monkeypatch.delitem(kombu_transport._transport_cache, "redis", raising=False)
    try:
        [message] = wiring._process(app_with())
        assert message.id == "fairshift.E011" and "setup_celery(app)" in str(message.hint)
    finally:
        kombu_transport._transport_cache.pop("redis", None)


def test_calls_without_owners_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """All of them would be the shared owner's."""
    monkeypatch.setattr(before_task_publish, "receivers", [])
    assert ids(app_with()) == ["fairshift.E012"]


def test_no_hook_of_a_worker_s_start_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Celery's own does not count."""
    ours = [
        (key, receiver)
        for key, receiver in worker_init.receivers
        if "DjangoFixup" in str(key) or "celery.fixups" in str(getattr(receiver, "__module__", ""))
    ]
    monkeypatch.setattr(worker_init, "receivers", ours)
    assert ids(app_with()) == ["fairshift.E013"]


def test_celery_s_own_app_is_an_error() -> None:
    """The app that Celery makes where there is none. Said once, with the cure: what else it lacks
    is not this project's.
    """
    with Celery("default", fixups=[], set_as_current=False) as app:
        [message] = wiring._not_this_project(app)
    assert message.id == "fairshift.E010" and "__init__.py" in str(message.hint)


def test_an_app_of_one_thread_is_an_error() -> None:
    """A web server's threads would submit to another app's queues."""
    [message] = wiring._not_this_project(app_with())
    assert message.id == "fairshift.E010" and "DJANGO_SETTINGS_MODULE" in str(message.hint)


def test_urls_that_are_not_mounted_are_warned_of(settings: Settings) -> None:
    """Feeds would have no address; this module is a urls.py without one."""
    settings.ROOT_URLCONF = __name__
    [message] = wiring.check_feeds()
    assert message.id == "fairshift.W020" and 'include("jobs.urls")' in str(message.hint)


urlpatterns: list[Any] = []


@pytest.mark.parametrize(
    ("package", "tested", "what"),
    [
        ("celery", "4.6.0", "No worker of fair queues boots"),
        ("redis", "4.6.0", "No worker of fair queues boots"),
        ("billiard", "4.3.0", "Workers of fair queues boot with"),
    ],
)
def test_untested_versions_are_warned_of(
    monkeypatch: pytest.MonkeyPatch, package: str, tested: str, what: str
) -> None:
    """In the words with which a worker is refused, or warns."""
    assert wiring.check_versions() == []
    monkeypatch.setitem(TESTED, package, (tested,))
    [message] = wiring.check_versions()
    untested = fleet.untested_versions()
    assert untested is not None and message.hint == untested.sentence
    assert message.id == "fairshift.W021" and message.msg.startswith(what)


def worker(app: Celery, *queues: str) -> Any:
    """Return what a boot step sees of a worker that takes from some queues."""
    app.amqp.queues.select(queues)
    return SimpleNamespace(app=app)


@pytest.mark.django_db
def test_a_worker_without_install_does_not_boot() -> None:
    """Only where it takes durable runs: the system's worker could do without."""
    app = app_with()
    step = boot.RefusesUnwired(None)
    step.create(worker(app, "system"))
    with pytest.raises(ImproperlyConfigured, match="setup_celery"):
        step.create(worker(app, "jobs"))
    fleet.install(app, application())
    step.create(worker(app, "jobs"))
