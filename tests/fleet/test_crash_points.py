"""Crash points: real processes that really end."""

import os
import re
import signal
from pathlib import Path

import pytest

from fleet.crash_points import KNOWN, FaultError, read_faults
from tests.commands import PROJECT, Done, python

POINT = "submit.after_insert"
PASSES = f"""
from fleet.crash_points import crash_point
for number in range(1, 6):
    print(number, flush=True)
    crash_point({POINT!r})
"""


def run_python(code: str, **environ: str) -> Done:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("FAULT")}
    return python("-c", code, environ=clean | environ)


def test_process_ends_at_the_given_pass() -> None:
    """FAULT=name:n is a power cut at the n-th pass: SIGKILL, not before and not after."""
    ended = run_python(PASSES, FAULT=f"{POINT}:3")
    assert (ended.returncode, ended.stdout.split()) == (-signal.SIGKILL, ["1", "2", "3"])


def test_a_marked_fault_does_not_fire_again(tmp_path: Path) -> None:
    """With FAULT_ONCE_DIR the second process finds the marker of the first and lives."""
    environ = {"FAULT": f"{POINT}:2", "FAULT_ONCE_DIR": str(tmp_path)}
    first, second = run_python(PASSES, **environ), run_python(PASSES, **environ)
    assert (first.returncode, second.returncode) == (-signal.SIGKILL, 0)
    assert [marker.name for marker in tmp_path.iterdir()] == [f"{POINT}:2"]


@pytest.mark.parametrize(
    ("environ", "message"),
    [
        ({"FAULT": "submit.after_inser:1"}, "did you mean 'submit.after_insert'"),
        ({"FAULT": "lunch:1"}, "known: submit.after_insert"),
        ({"FAULT": POINT}, "must be name:n"),
        ({"FAULT": f"{POINT}:0"}, "pass n of 1 or more"),
        ({"FAULT": f"{POINT}:-1"}, "pass n of 1 or more"),
        ({"FAULT": f"{POINT}:1,"}, "unknown crash point ''"),
        ({"FAULT": f"{POINT}:1", "FAULT_ONCE_DIR": "/nowhere/at/all"}, "FAULT_ONCE_DIR"),
    ],
)
def test_bad_faults_are_refused(environ: dict[str, str], message: str) -> None:
    """An unusable fault is refused by name, with the near miss or the limit."""
    with pytest.raises(FaultError, match=re.escape(message)):
        read_faults(environ)


def test_a_bad_fault_stops_the_process_at_start() -> None:
    """A typo must not look like a proof in which nothing happened to die."""
    ended = run_python("import fleet.crash_points", FAULT="ledger.after_akc:1")
    assert ended.returncode == 1
    assert "did you mean 'ledger.after_ack'" in ended.stderr


def test_the_register_and_the_calls_agree() -> None:
    """The register lists each crash point that the code passes, and no other."""
    called = {
        name
        for folder in ("config", "fleet", "jobs")
        for path in (PROJECT / folder).rglob("*.py")
        for name in re.findall(r"crash_point\(\s*[\"']([^\"']+)[\"']", path.read_text())
    }
    assert called == set(KNOWN)
