"""tests/migrated.py: the copy of the test database fits the code."""

import shutil
from datetime import UTC, datetime
from pathlib import Path

from tests.migrated import MADE_OF, ROOT, key


def test_a_change_of_what_it_is_made_of_makes_another_one(tmp_path: Path) -> None:
    """Of a migration, its SQL, a model, a setting, a library, a server; each day has its own."""
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
        "jobs/migrations/0003_runs.py",
        "jobs/migrations/sql/0003_runs.sql",
        "config/embedded/postgres.py",
    ):
        with (tmp_path / name).open("a") as file:
            file.write("\n")
        assert key(tmp_path) not in known, name
        known.add(key(tmp_path))
