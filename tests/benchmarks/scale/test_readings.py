"""CPU time of real processes."""

import subprocess
import sys

import pytest

from tests.benchmarks.scale.readings import crowding, tree_seconds

BURN = "import time\nwhile time.process_time() < 0.2: pass\n"
PARENT = f"""
import subprocess, sys
subprocess.run([sys.executable, "-c", {BURN!r}])
print("ended", flush=True)
sys.stdin.read()
"""


def test_time_of_children_counts_also_when_they_have_ended() -> None:
    """Its parent does nothing itself."""
    with subprocess.Popen(
        [sys.executable, "-c", PARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == b"ended\n"
        assert 0.2 <= tree_seconds(parent.pid) < 1.5
        parent.communicate()


def test_a_process_that_has_ended_counts_nothing() -> None:
    """A child may end between two looks."""
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    assert tree_seconds(ended.pid) == 0


@pytest.mark.proof
def test_busy_neighbours_take_a_part_of_a_core_or_nothing() -> None:
    """Never all of it: it is CPU time, which does not count waits for a core."""
    assert 0 <= crowding(others=1) < 0.9
