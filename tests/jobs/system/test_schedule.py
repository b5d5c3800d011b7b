"""jobs/system/schedule.py: beat drives Fairshift by ordinary PeriodicTasks."""

from __future__ import annotations

import pytest
from celery import current_app
from django_celery_beat.models import IntervalSchedule, PeriodicTask

from jobs import tasks  # noqa: F401  registers the system's own tasks
from jobs.system.schedule import PERIODIC, keep_periodic_tasks

pytestmark = pytest.mark.django_db


def keep() -> None:
    keep_periodic_tasks(periodic_tasks=PeriodicTask, intervals=IntervalSchedule)


def test_all_that_drives_fairshift_is_scheduled() -> None:
    """On the system's queue, under names that Celery knows; doing it twice adds nothing."""
    PeriodicTask.objects.filter(name__startswith="fairshift").delete()
    keep()
    keep()
    made = {task.name: task for task in PeriodicTask.objects.filter(name__startswith="fairshift")}
    assert set(made) == set(PERIODIC)
    assert {task.queue for task in made.values()} == {"system"}
    assert {task.task for task in made.values()} <= set(current_app.tasks)
    assert all(task.enabled for task in made.values())


def test_what_an_operator_changed_stays() -> None:
    """A deploy does not switch on again what somebody switched off."""
    keep()
    slow = IntervalSchedule.objects.create(every=77, period="minutes")
    name = "fairshift: sweep for lost hints"
    PeriodicTask.objects.filter(name=name).update(enabled=False, interval=slow)
    keep()
    task = PeriodicTask.objects.get(name=name)
    assert (task.enabled, task.interval) == (False, slow)
