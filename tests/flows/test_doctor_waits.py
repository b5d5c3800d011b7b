"""manage.py doctor where something waits: a check of the project, the pulse, a run."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from tests.flows.breaking import repeated, silent
from tests.flows.installation import Installation
from tests.flows.test_doctor import found, sound
from tests.processes import children
from tests.waiting import wait_for

__all__ = ["sound"]
pytestmark = pytest.mark.proof

EVERY_MINUTE = """
from jobs import upsert_jobs
upsert_jobs("acme", [{
    "key": "each", "task": "tests.record", "arguments": {"n": 1}, "interval_minutes": 1,
}])
"""
LATE_SECONDS = 200
"""A job is late a minute after it was due, which is within a minute."""


@contextmanager
def frozen_children(it: Installation, name: str) -> Iterator[None]:
    """Stop the clock for the pool of a worker: it lives, and none of its tasks ends.

    A task with a time limit has its child killed and replaced by a new one, which is stopped, too.
    """
    pid = it.stack.pid(name)
    assert pid is not None, f"{name} is down"
    stopped = set[int]()

    def stop_children() -> None:
        # A process may end at any time.
        with suppress(OSError):
            for each in children(pid) - stopped:
                os.kill(each, signal.SIGSTOP)
                stopped.add(each)

    stop_children()
    assert stopped, f"{name} has no children"
    try:
        with repeated(stop_children, seconds=0.02):
            yield
    finally:
        for each in stopped:
            with suppress(ProcessLookupError):
                os.kill(each, signal.SIGCONT)


def test_a_check_of_the_project_that_waits(sound: Installation) -> None:
    """The rest is looked at, and the command ends in time."""
    with silent("WAITS_FOR_PORT", "{port}")(sound) as environ:
        told = found(sound, **environ)
    assert told.keys() == {"D001"} and ": wait" in told["D001"]["text"]
    assert "does a check of yours wait" in told["D001"]["fix"]


def test_a_pulse_that_stands_still(sound: Installation) -> None:
    """The system worker lives, but none of its tasks ends: jobs are late soon after."""
    sound.run(EVERY_MINUTE)
    with frozen_children(sound, "system"):
        told = wait_for(
            lambda: told if "D305" in (told := found(sound)) else None, seconds=90, what="silence"
        )
        assert not {"D301", "D302", "D303"} & told.keys()
        assert "look at its log" in told["D305"]["fix"]
        late = wait_for(lambda: found(sound).get("D307"), seconds=LATE_SECONDS, what="a late job")
        assert "too few or too slow" in late["fix"]
    wait_for(lambda: not {"D305", "D307"} & found(sound).keys(), seconds=90, what="the pulse")
