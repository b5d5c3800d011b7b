"""CPU time of real processes."""

import subprocess
import sys

from tests.benchmarks.scale.readings import tree_seconds

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
