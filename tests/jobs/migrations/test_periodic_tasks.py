"""jobs/migrations/0006_periodic_tasks.py: beat drives Fairshift by ordinary PeriodicTasks."""

import pytest
from celery import current_app
from django_celery_beat.models import IntervalSchedule, PeriodicTask
from pytest_django import Settings

from jobs import tasks  # noqa: F401  registers the system's own tasks
from jobs.system.beat import ROUNDS
from tests.periodic import make_periodic_tasks

pytestmark = pytest.mark.django_db


def ours() -> list[PeriodicTask]:
    return list(PeriodicTask.objects.filter(name__startswith="fairshift: "))


def test_all_that_drives_fairshift_is_scheduled() -> None:
    """`migrate` has made one for each round, under a name that Celery knows."""
    assert sorted(made.task for made in ours()) == sorted(ROUNDS & set(current_app.tasks))
    assert {made.queue for made in ours()} == {"system"}
    assert all(made.enabled for made in ours())


def test_they_are_on_the_queue_of_the_system_worker(settings: Settings) -> None:
    """A setting names that queue. A project that has two intervals of one second is no error."""
    PeriodicTask.objects.all().delete()
    IntervalSchedule.objects.create(every=1, period="seconds")
    settings.FAIRSHIFT = {"SYSTEM_QUEUE": "inner"}
    make_periodic_tasks()
    assert {made.queue for made in ours()} == {"inner"}
    assert len(ours()) == len(ROUNDS)
