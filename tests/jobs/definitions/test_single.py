"""jobs/definitions/single.py: one job changed or deleted while another transaction changes it."""

from collections.abc import Callable
from typing import Any

import pytest

import tests.tasks  # noqa: F401  registers the tasks of scenes
from jobs.definitions.single import change_job, create_job, delete_job, read_job
from jobs.models import Job, Owner
from tests.jobs.scenes import behind, superuser

GIVEN = {"task": "tests.add", "arguments": {"x": 1, "y": 2}}


def _change(job: Job) -> Job | None:
    return change_job(job, {**GIVEN, "name": "the later writer's"})


@pytest.mark.parametrize(
    ("act", "lost"), [(_change, None), (delete_job, False)], ids=["change", "delete"]
)
def test_the_later_of_two_writers_changes_nothing(
    committed: None, acme: Owner, act: Callable[[Job], Any], lost: bool | None
) -> None:
    """It waits for the earlier writer's lock, and then finds another version than it has read."""
    made = create_job(acme, {"key": "nightly", **GIVEN})
    assert made is not None
    read = read_job(made.pk, by=superuser())
    assert read is not None
    with behind(lambda: act(read)) as (begin, outcomes):
        Job.objects.filter(pk=made.pk).update(name="the earlier writer's")
        begin()
    assert outcomes == [lost]
    assert Job.objects.get().name == "the earlier writer's"
