"""tests/parts.py: which proofs belong to what has changed."""

import subprocess
from pathlib import Path

import pytest

from tests.parts import PARTS, TESTS, parts_of

PROJECT = TESTS.parent


def test_every_part_is_there() -> None:
    """A test that was renamed or removed is named by this."""
    parts = {part for given in PARTS.values() for part in given}
    assert [part for part in parts if not (TESTS / part).exists()] == []
    assert [path for path in PARTS if not (PROJECT / path).exists()] == []


def test_every_proof_belongs_to_a_folder() -> None:
    """Else `CHANGED=1` would never play it."""
    known = {part for name, given in PARTS.items() for part in given if part}
    proofs = [path for path in TESTS.rglob("test_*.py") if "mark.proof" in path.read_text()]
    left = [
        path.relative_to(TESTS).as_posix()
        for path in proofs
        if not any(path.is_relative_to(TESTS / part) for part in known)
    ]
    assert left == [Path(__file__).name]


def test_every_folder_of_code_has_proofs() -> None:
    """A change of any module leads to some."""
    done = subprocess.run(
        ["git", "ls-files", "config", "fleet", "jobs", "templates", "compose"],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout
    assert [path for path in done.stdout.splitlines() if not parts_of([path])] == []


@pytest.mark.parametrize(
    ("changed", "parts"),
    [
        ([], []),
        (["README.md"], []),
        (["fleet/tracing.py"], ["tests/flows/test_tracing.py"]),
        (
            ["jobs/static/jobs/app.css", "jobs/locale/de/x.po"],
            ["tests/browser", "tests/jobs/locale"],
        ),
        (["tests/flows/test_acl.py"], ["tests/flows/test_acl.py"]),
        (["tests/flows/web.py", "tests/flows/test_acl.py"], ["tests/flows"]),
        (["tests/waiting.py", "fleet/tracing.py"], ["tests"]),
        (["jobs/apps.py", "fleet/tracing.py"], ["tests"]),
    ],
)
def test_what_has_changed_decides(changed: list[str], parts: list[str]) -> None:
    """The nearest folder of the table counts; a test is its own part, a helper its folder's."""
    assert parts_of(changed) == parts
