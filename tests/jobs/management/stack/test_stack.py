"""jobs/management/stack: processes that start together, are watched, and leave nothing behind."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from jobs.management.stack.programs import flower
from jobs.management.stack.stack import Program, Stack, StackError, free_port
from tests.processes import is_running
from tests.waiting import wait_for

SLEEPER = "import time; print('up', flush=True); time.sleep(600)"
STUBBORN = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); " + SLEEPER
PARENT = f"""
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", {SLEEPER!r}])
print("child", child.pid, flush=True)
child.wait()
"""
OWNER_OF_A_STACK = f"""
import pathlib, sys, time
from jobs.management.stack.stack import Program, Stack
stack = Stack([Program("sleeper", [sys.executable, "-c", {SLEEPER!r}])],
              log_folder=pathlib.Path(sys.argv[1]))
stack.start()
print(stack.pid("sleeper"), flush=True)
time.sleep(600)
"""


def program(
    name: str, code: str, *, ready_text: str = "", ready_port: int | None = None
) -> Program:
    """Return a program that runs a piece of Python."""
    command = [sys.executable, "-c", code]
    return Program(name, command, ready_text=ready_text, ready_port=ready_port)


def child_of(log: Path) -> int:
    """Return the pid that PARENT printed."""
    return wait_for(
        lambda: next((int(word) for word in log.read_text().split() if word.isdigit()), 0)
    )


def test_ready_means_text_and_port(tmp_path: Path) -> None:
    """`wait_ready` returns once the text is in the log and the port accepts connections."""
    port = free_port(0)
    code = (
        "import socket; s = socket.create_server(('127.0.0.1', int('%d')));"
        "print('listening', flush=True)\nwhile True: s.accept()"
    )
    server = program("server", code % port, ready_text="listening", ready_port=port)
    with Stack([server], log_folder=tmp_path) as stack:
        stack.wait_ready(seconds=10)
        assert list(stack.new_lines()) == [("server", "listening")]
        assert list(stack.new_lines()) == []


def test_program_that_ends_is_an_error_with_its_last_lines(tmp_path: Path) -> None:
    """Without restart, the error names the program, its exit code and its last lines."""
    failing = program("failing", "raise SystemExit('no such queue')", ready_text="never")
    with (
        pytest.raises(StackError, match=r"(?s)failing ended with 1\..*no such queue"),
        Stack([failing], log_folder=tmp_path) as stack,
    ):
        stack.wait_ready(seconds=10)


def test_dead_program_starts_again(tmp_path: Path) -> None:
    """With restart, a killed program is replaced, and so is any child that it left."""
    with Stack([program("parent", PARENT)], log_folder=tmp_path, restart=True) as stack:
        first, child = stack.pid("parent"), child_of(tmp_path / "parent.log")
        assert first is not None
        os.kill(first, signal.SIGKILL)

        def replaced() -> bool:
            stack.watch()
            return stack.pid("parent") not in (None, first)

        wait_for(replaced)
        wait_for(lambda: not is_running(child))


def test_kill_group_takes_the_children_too(tmp_path: Path) -> None:
    """A killed group is a power cut: no child of the program goes on."""
    with Stack([program("parent", PARENT)], log_folder=tmp_path, restart=True) as stack:
        child = child_of(tmp_path / "parent.log")
        stack.kill_group("parent")
        wait_for(lambda: not is_running(child))
        assert stack.pid("parent") is None


def test_stop_leaves_nothing(tmp_path: Path) -> None:
    """A program that ignores SIGTERM is killed after the grace, orphaned children as well."""
    stubborn = program("stubborn", STUBBORN, ready_text="up")
    with Stack([stubborn, program("parent", PARENT)], log_folder=tmp_path) as stack:
        stack.wait_ready(seconds=10)
        pids = [stack.pid("stubborn"), stack.pid("parent"), child_of(tmp_path / "parent.log")]
        stack.stop(grace_seconds=0.3)
        for pid in pids:
            assert pid is not None
            wait_for(lambda pid=pid: not is_running(pid), what=f"{pid} is gone")


def test_killed_owner_takes_its_processes_along(tmp_path: Path) -> None:
    """Even a SIGKILL of the process that started the stack leaves no process behind."""
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER_OF_A_STACK, str(tmp_path)], stdout=subprocess.PIPE
    )
    assert owner.stdout is not None
    pid = int(owner.stdout.readline())
    owner.kill()
    owner.communicate()
    wait_for(lambda: not is_running(pid))


def test_flower_has_a_login_that_no_command_line_shows() -> None:
    """The password is in the environment alone, and there is no Flower without one."""
    program = flower(port=5555, user="admin", password="sesame")
    assert program.environment["FLOWER_BASIC_AUTH"] == "admin:sesame"
    assert not any("sesame" in word for word in program.command)
    with pytest.raises(ValueError, match="never runs without a login"):
        flower(port=5555, user="admin", password="")
