"""jobs/core/locks.py lists every advisory lock; sql.py lets a verb run once at a time by one."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from jobs.core import sql
from jobs.core.locks import LockClass
from jobs.core.sql import alone
from jobs.system.partitions import make_partitions
from tests.jobs.scenes import at_once

TAKEN = re.compile(r"pg_\w*advisory_\w+\(([^,()]*(?:,[^()]*(?:\([^()]*\))?)?)\)", re.DOTALL)
SOURCES = sorted(
    path
    for app in ("config", "fleet", "jobs")
    for path in Path(settings.BASE_DIR, app).rglob("*")
    if path.suffix in {".py", ".sql"} and "pg_" in path.read_text()
)


def test_each_lock_has_two_keys_and_its_class_is_in_the_registry() -> None:
    """A number that stands in SQL is one of the registry; others are handed in from it."""
    found = {
        (path.name, *map(str.strip, keys.split(",", 1)))
        for path in SOURCES
        for keys in TAKEN.findall(path.read_text())
    }
    assert len(found) >= 8
    for name, *keys in found:
        assert len(keys) == 2, f"{name}: {keys} is one key"
        space = keys[0]
        # `space` is the column of numbers in lock_limits.sql, read below.
        assert space in {"%s", "limited.space"} or int(space) in set(LockClass), name
    limited = Path(settings.BASE_DIR, "jobs/runs/sql/lock_limits.sql").read_text()
    for space in re.findall(r"\b17\d\d\b", limited):
        assert int(space) in set(LockClass)


@pytest.mark.usefixtures("db")
def test_locks_in_use_are_seen_with_both_keys() -> None:
    """In pg_locks, `objsubid` is 2 for a lock with two keys."""
    make_partitions()
    rows = sql.query(
        "SELECT classid::int, objid::int, objsubid FROM pg_locks"
        " WHERE locktype = 'advisory' AND pid = pg_backend_pid()"
    )
    assert (LockClass.PARTITIONS, 0, 2) in {tuple(row.values()) for row in rows}


def verb(module: str, act: Callable[[], Any]) -> Callable[[], Any]:
    """Return the verb `work` of a module."""

    def work() -> Any:
        return act()

    work.__module__, work.__qualname__ = module, "work"
    return alone(work)


def test_a_verb_runs_once_at_a_time(committed: None) -> None:
    """A call that meets another one returns None; a verb of another module is another verb."""
    same = verb("one", lambda: ["same"])
    other = verb("two", lambda: ["other"])
    outer = verb("one", lambda: at_once(same, other))
    assert outer() == [None, ["other"]]
    assert outer() == [None, ["other"]]
