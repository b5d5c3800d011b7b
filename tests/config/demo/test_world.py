"""config/demo/world.py: the owners and jobs of the demo, and what remains after it."""

import pytest

import tests.tasks  # noqa: F401  registers tests.add
from config.demo.tasks import check_health
from config.demo.world import CHECKING_OWNER, SMALL_OWNER, end_world, make_checks, make_world
from jobs import submit
from jobs.core.states import State
from jobs.models import Job, Run


@pytest.mark.django_db(transaction=True)
def test_a_demo_that_has_ended_leaves_nothing_that_waits() -> None:
    """Its tasks are unknown to later workers; runs of other owners stay."""
    make_world(large=["device 1"], small=["lab 1"])
    make_checks(["device 1"])
    its_own = submit(check_health.name, owner=CHECKING_OWNER, device="device 1")
    others = submit("tests.add", 1, 2, owner=SMALL_OWNER)
    end_world()
    assert Run.objects.get(pk=its_own.pk).state == State.CANCELLED
    assert Run.objects.get(pk=others.pk).state == State.QUEUED
    assert not Job.objects.filter(enabled=True).exists()
