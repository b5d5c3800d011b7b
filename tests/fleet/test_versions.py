"""fleet/versions.py: what is said of versions that were not tested, and which of them boot."""

import subprocess
import sys

import pytest

from fleet import versions

TESTED = {"celery": "5.7.0", "billiard": "4.3.2", "kombu": "5.7.0", "redis": "8.1.0"}
ELSEWHERE = """
import importlib.metadata, celery.worker.state, kombu.transport.redis
real = importlib.metadata.version
importlib.metadata.version = lambda name: {"kombu": "5.6.2"}.get(name) or real(name)
del kombu.transport.redis.PublishBatch, celery.worker.state.should_stop
import fleet
"""


def installed(monkeypatch: pytest.MonkeyPatch, **others: str) -> versions.Untested | None:
    monkeypatch.setattr(versions, "version", {**TESTED, **others}.__getitem__)
    return versions.untested_versions()


def test_the_installed_versions_are_tested_ones() -> None:
    """Those of the lock file, and of each cell of `make compat`: this suite has run on them."""
    assert versions.untested_versions() is None


@pytest.mark.parametrize(
    ("name", "of_tested_lines", "of_others"),
    [
        ("celery", ["5.7.1", "5.6.9"], ["5.8.0", "5.5.2", "5.4.0"]),
        ("kombu", ["5.7.3"], ["5.8.0"]),
        ("billiard", ["4.3.9"], ["4.4.0"]),
        ("redis", ["6.4.1", "7.0.0", "8.9.2"], ["6.3.0", "9.0.0"]),
    ],
)
def test_another_release_boots_if_its_line_is_tested_or_allowed(
    monkeypatch: pytest.MonkeyPatch, name: str, of_tested_lines: list[str], of_others: list[str]
) -> None:
    """A line is a minor version, and of redis-py a major one; each is named, with the cure."""
    for version in [*of_tested_lines, *of_others]:
        untested = installed(monkeypatch, **{name: version})
        assert untested is not None and untested.boots == (version in of_tested_lines)
        assert f"not tested with {name} {version} (tested: " in untested.sentence
        is_cure_named = 'set "allow_untested_versions": True' in untested.sentence
        assert is_cure_named == (version in of_others)


def test_names_that_are_missing_are_named_before_anything_is_imported() -> None:
    """Whatever is allowed: such a version would fail in a worker, in the middle of its work."""
    imported = subprocess.run(
        [sys.executable, "-c", ELSEWHERE], capture_output=True, text=True, check=False
    )
    assert imported.stderr.splitlines()[-1] == (
        "ImportError: Fairshift does not run with kombu 5.6.2 (tested: 5.7.0):"
        " celery.worker.state has no should_stop;"
        " there is no kombu.transport.redis:PublishBatch."
        " Install tested versions (docs/operate/pools.md)."
    )
