"""jobs/demo/world.py: the world that the demo plays in, and what it leaves behind."""

from __future__ import annotations

from jobs import submit
from jobs.demo.tasks import check_health
from jobs.demo.world import CHECKING_OWNER, end_world, make_checks, make_world
from jobs.models import Job, Owner, Run
from jobs.states import State


def test_a_demo_that_has_ended_leaves_nothing_that_waits(acme: Owner) -> None:
    """The workers of tomorrow do not know its tasks; what is somebody else's stays."""
    make_world(large=["device 1"], small=["lab 1"])
    make_checks(["device 1"])
    its_own = submit(check_health.name, owner=CHECKING_OWNER, device="device 1")
    others = submit("tests.add", 1, 2, owner=acme)
    end_world()
    assert Run.objects.get(pk=its_own.pk).state == State.CANCELLED
    assert Run.objects.get(pk=others.pk).state == State.QUEUED
    assert not Job.objects.filter(enabled=True).exists()
