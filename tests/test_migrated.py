"""tests/migrated.py: the copy of the test database fits the code."""

import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest

from jobs.core import sql
from tests.migrated import MADE_OF, ROOT, key
from tests.own_servers import ARE_OWN


def test_a_change_of_what_it_is_made_of_makes_another_one(tmp_path: Path) -> None:
    """Of a migration, also of its SQL, of a model, a setting or a library; each day has its own."""
    for name in MADE_OF:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        copy(ROOT / name, tmp_path / name)
    known = {key(tmp_path)}
    assert known == {key(ROOT)} and key(ROOT).startswith(f"{datetime.now(UTC):%Y%m%d}-")
    for name in (
        "requirements.lock",
        "config/settings.py",
        "jobs/models/run.py",
        "jobs/migrations/0004_runs.py",
        "jobs/migrations/sql/0004_runs.sql",
    ):
        with (tmp_path / name).open("a") as file:
            file.write("\n")
        assert key(tmp_path) not in known, name
        known.add(key(tmp_path))


@pytest.mark.django_db
@pytest.mark.skipif(not ARE_OWN, reason="servers are given by their URLs")
def test_it_is_as_if_migrated_just_now() -> None:
    """The cursor of due times is at the present: a beat finds nothing that it has missed."""
    [row] = sql.query("SELECT clock_timestamp() - beat_at AS age FROM jobs_cursor")
    assert row["age"].total_seconds() < 3_600
