"""jobs/checks/broker_versions.py: each release line has the oldest release with all fixes."""

import pytest

from jobs.checks.broker_versions import REDIS_FLOORS, VALKEY_FLOORS, oldest_patched


@pytest.mark.parametrize(
    ("version", "patched"),
    [
        ("6.2.14", "6.2.24"),
        ("6.2.24", None),
        ("6.2.100", None),
        ("7.0.15", "7.2.16"),  # a line without fixes: the next one that has them
        ("7.4.10", "7.4.11"),
        ("8.0.6", "8.2.9"),
        ("8.8.1", "8.8.2"),
        ("8.10.1", None),
        ("9.0.0", None),  # newer than the table
        ("8.2", None),
        ("unstable", None),
    ],
)
def test_redis(version: str, patched: str | None) -> None:
    """The floor of its own line, or of the next line that gets fixes."""
    assert oldest_patched(version, REDIS_FLOORS) == patched


@pytest.mark.parametrize(
    ("version", "patched"),
    [("7.2.13", "7.2.14"), ("8.1.9", None), ("9.0.4", "9.0.5"), ("9.1.1", None)],
)
def test_valkey(version: str, patched: str | None) -> None:
    """It has release lines of its own."""
    assert oldest_patched(version, VALKEY_FLOORS) == patched
