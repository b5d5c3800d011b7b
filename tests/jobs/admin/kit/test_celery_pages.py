"""jobs/admin/kit/celery_pages.py: rows of results and PeriodicTasks are for superusers only."""

from collections.abc import Callable

import pytest
from django.test import Client
from django.urls import reverse
from django_celery_beat.models import IntervalSchedule, PeriodicTask
from django_celery_results.models import TaskResult

from jobs.models import Owner

MAY = [
    f"{verb}_{model}"
    for verb in ("view", "add", "change", "delete")
    for model in ("taskresult", "groupresult", "periodictask", "intervalschedule")
]


@pytest.fixture
def pages(acme: Owner) -> list[str]:
    """The pages of a result and of a PeriodicTask, and their lists."""
    result = TaskResult.objects.create(task_id="of acme", task_args='"(secret,)"')
    every = IntervalSchedule.objects.create(every=1, period="days")
    task = PeriodicTask.objects.create(name="of acme", task="tests.add", interval=every)
    rows = {
        "django_celery_results_taskresult": result.pk,
        "django_celery_beat_periodictask": task.pk,
        "django_celery_beat_intervalschedule": every.pk,
    }
    lists = [reverse(f"admin:{name}_changelist") for name in rows]
    return [*lists, *(reverse(f"admin:{name}_change", args=[key]) for name, key in rows.items())]


def test_members_of_owners_do_not_see_them(
    pages: list[str], person: Callable[..., Client], acme: Owner
) -> None:
    """Nor in the index, whatever permissions of Django's they have."""
    client = person("ann", *MAY, acme="admin")
    assert {client.get(page).status_code for page in pages} == {403}
    assert client.get(reverse("admin:django_celery_beat_periodictask_add")).status_code == 403
    assert "celery" not in client.get(reverse("admin:index")).content.decode().lower()
