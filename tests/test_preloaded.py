"""Forked Python processes: they are what a start from nothing would be."""

import os
import signal
import subprocess
from typing import Any

import pytest

from tests.flows.processes import environment
from tests.preloaded import PROJECT, Preloaded

KIND = "from django.conf import settings; print(settings.FAIRSHIFT['LEASE_SECONDS'])"
IMPORTED = "import sys; print({'config', 'jobs', 'fleet'} & {n.split('.')[0] for n in sys.modules})"
LEADS = "import os; print(os.getpid() == os.getpgid(0) == os.getsid(0))"


def output_of(code: str, environ: dict[str, str], **options: Any) -> str:
    process = Preloaded(["-c", code], environ, stdout=subprocess.PIPE, text=True, **options)
    output, _ = process.communicate(timeout=300)
    assert process.returncode == 0
    return output.strip()


@pytest.fixture
def scene(tmp_path: Any) -> dict[str, str]:
    """The environment of a process in a scene, whose database it never asks for."""
    given = environment(tmp_path / "tasks.log")
    return {**os.environ, "DJANGO_SETTINGS_MODULE": "config.settings", **given}


def test_settings_are_those_of_its_own_environment(scene: dict[str, str]) -> None:
    """Also after a process with another environment, and before the next with the first one."""
    for seconds in ("3.0", "4.0", "3.0"):
        environ = {**scene, "FAIRSHIFT_LEASE_SECONDS": seconds}
        assert output_of(KIND, environ, imports=PROJECT) == seconds


def test_what_differs_from_test_to_test_is_that_of_its_own(scene: dict[str, str]) -> None:
    """These variables choose no parent; each process has its own all the same."""
    for path in ("one", "two"):
        environ = {**scene, "JUDGE_LOG": path}
        asked = "import os; print(os.environ['JUDGE_LOG'])"
        assert output_of(asked, environ, imports=PROJECT) == path


def test_crash_points_are_those_of_its_own(scene: dict[str, str]) -> None:
    """A parent has loaded them before; a name that is unknown ends the process, as ever."""
    armed = "from fleet import crash_points; print(sorted(crash_points._armed))"
    for fault, names in (("beat.after_note:1", "['beat.after_note']"), ("", "[]")):
        assert output_of(armed, {**scene, "FAULT": fault}, imports=PROJECT) == names
    wrong = Preloaded(["-c", "pass"], {**scene, "FAULT": "no:1"}, imports=PROJECT)
    assert wrong.wait(300) == 1


def test_without_imports_nothing_of_ours_is_loaded() -> None:
    """So that a test of a start sees all of it, and only the variables that it gives."""
    assert output_of(IMPORTED, dict(os.environ)) == "set()"
    assert output_of("import os; print(sorted(os.environ))", {"ONLY": "1"}) == "['ONLY']"


def test_wrong_settings_are_told_by_the_process_itself(scene: dict[str, str]) -> None:
    """Its parent has loaded nothing then."""
    process = Preloaded(
        ["-c", "import django; django.setup()"],
        {**scene, "FAIRSHIFT_LEASE_SECONDS": "soon"},
        imports=PROJECT,
        stderr=subprocess.PIPE,
        text=True,
    )
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 1
    assert "ImproperlyConfigured: FAIRSHIFT_LEASE_SECONDS is 'soon'" in errors


def test_its_end_is_told_as_it_was() -> None:
    """A status, the text of an exit, or a signal; what it reads and prints goes through pipes."""
    assert Preloaded(["-c", "raise SystemExit(7)"], os.environ).wait(300) == 7
    with Preloaded(["-c", "import time; time.sleep(60)"], os.environ) as sleeper:
        assert sleeper.poll() is None
        with pytest.raises(subprocess.TimeoutExpired):
            sleeper.wait(0.01)
        sleeper.send_signal(signal.SIGKILL)
        assert sleeper.wait() == -signal.SIGKILL
    echo = Preloaded(
        ["-c", "print(input())"],
        os.environ,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert echo.communicate("heard\n", timeout=300)[0] == "heard\n"


def test_it_leads_a_session_of_its_own() -> None:
    """A kill of its group reaches its children, and nobody else."""
    assert output_of(LEADS, dict(os.environ)) == "True"


def test_its_exit_functions_run() -> None:
    code = "import atexit; atexit.register(print, 'the end')"
    assert output_of(code, dict(os.environ)) == "the end"
