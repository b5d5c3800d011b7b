"""jobs/catalog/typed.py and mypy_plugin.py: wrong calls are refused before they run."""

import os
import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

from jobs import job
from jobs.catalog.typed import SubmitOptions
from jobs.core.errors import OptionError
from jobs.models import Owner, Run
from jobs.runs.options import Options
from tests.docs.pages import PROJECT
from tests.jobs.scenes import states

CALLS = """
from typing import Any
from jobs import asubmit, job, submit, submit_many
from jobs.models import Run, Submission

@job
def greet(name: str, loud: bool = False) -> str:
    return name

@job(max_attempts=3)
def many(*names: str, **more: int) -> None: ...

@job(bind=True)
def bound(self: Any, x: int) -> int:
    return x

@job
def of_owner(owner: str) -> None: ...

calls: list[dict[str, Any]] = []
names = ["Ada", "Bob"]

run: Run = submit(greet, owner="acme", name="Ada")
submit(greet, "Ada", True, owner="acme", priority=3, labels={"site": "berlin"})
submit(greet, owner="acme", arguments={"name": "Ada"})
submit(of_owner, owner="acme", arguments={"owner": "Ada"})
submit(many, "a", "b", owner="acme", x=1)
submit(bound, owner="acme", x=1)
submit("tests.add", owner="acme", x=1, y=2)
bulk: Submission = submit_many(greet, calls, owner="acme", label="night")
submit_many(greet, [{"name": "Ada"}, {"name": "Bob", "loud": True}], owner="acme")
submit_many(greet, ({"name": name} for name in names), owner="acme", priority=1)
submit_many("tests.add", [{"x": 1}], owner="acme")
typed: Run = greet.using(owner="acme", priority=1).using(lock="x").submit("Ada", loud=True)
greet.using(owner="acme").submit_many(greet.arguments(name) for name in names)
greet.submit(name="Ada")
said: str = greet("Ada")
async def right() -> Run:
    await greet.using(owner="acme").asubmit(name="Ada")
    await greet.asubmit("Ada")
    return await asubmit(greet, owner="acme", name="Ada")

submit(greet, owner="acme", nam="Ada")  # E: Unexpected keyword argument "nam"
submit(greet, owner="acme", name=1)  # E: Argument "name" to "submit" has incompatible type "int"
submit(greet, owner="acme")  # E: Missing positional argument "name"
submit(greet, name="Ada")  # E: Missing named argument "owner"
submit(greet, owner=7, name="Ada")  # E: Argument "owner" to "submit" has incompatible type "int"
submit(greet, owner="acme", name="Ada", priority="high")  # E: Argument "priority" to "submit"
submit(greet, owner="acme", name="Ada", priorty=1)  # E: Unexpected keyword argument "priorty"
submit(many, 1, owner="acme")  # E: Argument 2 to "submit" has incompatible type "int"
submit(bound, owner="acme", x="1")  # E: Argument "x" to "submit" has incompatible type "str"
submit_many(greet, [{"nam": "Ada"}], owner="acme")  # E: Expected TypedDict key "name" but
submit_many(greet, ({"name": 1} for name in names), owner="acme")  # E: TypedDict item "name" has
submit_many(greet, [{"name": "Ada"}], owner="acme", priorty=1)  # E: Unexpected keyword argument
submit_many(greet, [{"name": "Ada"}])  # E: Missing named argument "owner"
greet.using(owner="acme").submit(nam="Ada")  # E: Unexpected keyword argument "nam"
greet.using(owner="acme").submit(1)  # E: Argument 1 to "submit" of "TaskWithOptions"
greet.using(ownr="acme")  # E: Unexpected keyword argument "ownr"
greet.submit(1)  # E: Argument 1 to "submit" of "JobTask"
greet.using(owner="acme").submit_many([bound.arguments(1)])  # E: List item 0 has incompatible
greet.arguments(1)  # E: Argument 1 to "arguments" of "JobTask"
async def wrong() -> None:
    await asubmit(greet, owner="acme", name=1)  # E: Argument "name" to
    await greet.using(owner="acme").asubmit(1)  # E: Argument 1 to "asubmit"
"""
CONFIG = """
[mypy]
strict = True
plugins = jobs.catalog.mypy_plugin
[mypy-celery.*]
ignore_missing_imports = True
"""
CHECK = "import sys; from mypy import api; print(api.run(sys.argv[1:])[0])"


@pytest.mark.proof  # mypy reads the types of Django and ours anew
def test_mypy_refuses_wrong_calls_and_no_right_one(tmp_path: Path) -> None:
    """With the plugin; each wrong line is refused for its own reason, and no other line."""
    (tmp_path / "calls.py").write_text(CALLS)
    (tmp_path / "mypy.ini").write_text(CONFIG)
    # In a process of its own: what mypy builds would stay in this one's memory.
    command = [sys.executable, "-c", CHECK, "--config-file", "mypy.ini", "calls.py"]
    environ = {**os.environ, "MYPYPATH": str(PROJECT)}
    command += ["--cache-dir", str(PROJECT / ".mypy_cache/typed"), "--follow-imports", "silent"]
    answer = subprocess.run(
        command, cwd=tmp_path, env=environ, capture_output=True, text=True, check=True, timeout=500
    )
    found: dict[str, str] = {}
    for at, text in re.findall(r"^calls\.py:(\d+): error: (.*)$", answer.stdout, re.MULTILINE):
        found[at] = f"{found.get(at, '')} {text}"
    lines = dict(enumerate(CALLS.splitlines(), start=1))
    expected = {str(at): line.split("# E: ")[1] for at, line in lines.items() if "# E: " in line}
    assert found.keys() == expected.keys(), answer.stdout + answer.stderr
    for at, words in expected.items():
        assert words in found[at], (lines[int(at)], found[at])


def test_every_option_of_a_submit_has_a_type() -> None:
    """A new option would else be refused by type checkers alone."""
    assert SubmitOptions.__annotations__.keys() == {"owner", *(one.name for one in fields(Options))}


@job(name="tests.typed_greet")
def greet(name: str, loud: bool = False) -> str:
    """Greet a person."""
    return name.upper() if loud else name


def test_a_typed_submit_is_a_submit(acme: Owner) -> None:
    """Options first, then the arguments alone; a later option replaces an earlier one."""
    run = greet.using(owner=acme, priority=1, lock="x").using(priority=7).submit("Ada")
    assert states(run) == ["queued"] and run.arguments == ([], {"name": "Ada"})
    assert (run.owner, run.priority, run.lock_key) == (acme, 7, "acme:x")


def test_a_typed_bulk_is_one_submission(acme: Owner) -> None:
    """Its calls may be by position or by name."""
    calls = [greet.arguments("Ada"), greet.arguments(name="Bob", loud=True)]
    submission = greet.using(owner="acme").submit_many(calls, label="night")
    runs = Run.objects.filter(submission=submission).order_by("id")
    assert [run.arguments[1] for run in runs] == [{"name": "Ada"}, {"name": "Bob", "loud": True}]
    assert submission.label == "night"


def test_outside_a_run_an_owner_is_required() -> None:
    """The error says how to name one; without a run there is nobody to charge."""
    with pytest.raises(OptionError, match=r"needs \.using\(owner=\.\.\.\) before \.submit"):
        greet.submit("Ada")
